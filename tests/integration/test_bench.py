"""`rag bench`: sets in the forms of SQuAD, BEIR and TREC, and runs in TREC's."""

import json
from collections.abc import Callable
from pathlib import Path

import ir_measures
import pytest
from ir_measures import RR, Success, nDCG

from rag_resources.database.server import EmbeddedServer
from rag_resources.evaluation import bench
from rag_resources.evaluation.question_sets import read_question_set
from tests.command_line import Outcome, call_rag, isolate

TEXTS = {
    "d1": "La gata duerme en el tejado de la casa.",
    "d2": "El tren de Zaragoza sale a las nueve.",
    "d3": "La furgoneta se rompió por la correa.",
}
ASKED = {"q1": ("¿Dónde duerme la gata?", "d1"), "q2": ("¿A qué hora sale el tren?", "d2")}


def squad(folder: Path) -> Path:
    """An article with a paragraph per text, and a question without an answer."""
    paragraphs = [
        {
            "context": text,
            "qas": [
                {"id": key, "question": q, "answers": [{"text": text[:4], "answer_start": 0}]}
                for key, (q, own) in ASKED.items()
                if own == name
            ],
        }
        for name, text in TEXTS.items()
    ]
    paragraphs[2]["qas"] = [{"id": "q9", "question": "¿Y esto?", "answers": []}]
    path = folder / "squad.json"
    path.write_text(json.dumps({"data": [{"title": "Casa", "paragraphs": paragraphs}]}), "utf-8")
    return path


def beir(folder: Path) -> Path:
    """`corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv` with a header."""
    (folder / "qrels").mkdir()
    corpus = [{"_id": name, "title": "", "text": text} for name, text in TEXTS.items()]
    queries = [{"_id": key, "text": text} for key, (text, _own) in ASKED.items()]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    judged = [f"{key}\t{own}\t1" for key, (_text, own) in ASKED.items()]
    lines = ["query-id\tcorpus-id\tscore", *judged, "q1\td3\t0", "q2\tgone\t1"]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines), "utf-8")
    return folder


def trec(folder: Path) -> Path:
    """`corpus.tsv`, `queries.tsv` and `qrels.txt` of four columns."""
    for name, rows in (
        ("corpus.tsv", [f"{name}\t{text}" for name, text in TEXTS.items()]),
        ("queries.tsv", [f"{key}\t{text}" for key, (text, _own) in ASKED.items()]),
        ("qrels.txt", [f"{key} 0 {own} 1" for key, (_text, own) in ASKED.items()]),
    ):
        (folder / name).write_text("\n".join(rows), "utf-8")
    return folder


@pytest.mark.parametrize("form", [squad, beir, trec])
def test_each_form_has_the_same_notes_and_questions(
    form: Callable[[Path], Path], tmp_path: Path
) -> None:
    found = read_question_set(form(tmp_path))
    assert [note.content for note in found.notes] == list(TEXTS.values())
    contents = {note.external_id: note.content for note in found.notes}
    assert {(each.query, contents[each.notes[0]]) for each in found.questions} == {
        (text, TEXTS[own]) for text, own in ASKED.values()
    }


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    server: EmbeddedServer,
) -> Callable[..., Outcome]:
    """Call `rag` with the home of the tests' server."""
    isolate(monkeypatch, tmp_path, RAG_HOME=str(server._home), RAG_LANG="en")
    return lambda *arguments: call_rag(monkeypatch, capsys, *arguments)


def test_a_set_is_measured_with_intervals_beside_another_systems_run(
    rag: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "conjunto"
    folder.mkdir()
    beir(folder)
    other = tmp_path / "otro.run"
    other.write_text("q1 Q0 d3 1 0.9 x\nq1 Q0 d1 2 0.8 x\n", "utf-8")
    call = ("bench", folder, "--config", "fulltext", "--run", other)
    made = rag(*call, "--write-runs", tmp_path / "runs", "--json")
    assert made.code == 0, made.err
    [result] = made.json
    assert (result["notes"], result["questions"]) == (3, 2)
    ours, theirs = (each["metrics"] for each in result["measured"])
    assert ours["mrr"]["mean"] == 1.0
    qrels = {key: {own: 1} for key, (_text, own) in ASKED.items()}
    run = {"q1": {"d3": 0.9, "d1": 0.8}, "q2": {"d9": 0.1}}
    names = {RR @ 10: "mrr", nDCG @ 10: "ndcg_at_10", Success @ 10: "hit_rate_at_10"}
    for measure, value in ir_measures.calc_aggregate(list(names), qrels, run).items():
        assert theirs[names[measure]]["mean"] == pytest.approx(value)
        low, high = theirs[names[measure]]["interval"]
        assert low <= value <= high
    written = tmp_path / "runs" / "conjunto.1.fulltext.run"
    again = rag(*call[:-1], written, "--json", "--markdown", tmp_path / "tabla.md")
    assert [each["metrics"] for each in again.json[0]["measured"]] == [ours, ours]
    assert "| fulltext | – | 1.000" in (tmp_path / "tabla.md").read_text("utf-8")
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    assert rag(*call).code == 0, "the database in use is never touched"


def test_published_figures_stand_beside_the_set_that_they_were_measured_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = squad(tmp_path)
    known = tmp_path / "published.yaml"
    digest = bench.hashlib.sha256(path.read_bytes()).hexdigest()
    known.write_text(f"- {{sha256: {digest}, paragraphs: 1, mrr_at_10: {{BM25: 0.94}}}}\n", "utf-8")
    monkeypatch.setattr(bench, "PUBLISHED", known)
    assert bench.published_figures(path, 1) == {"BM25": 0.94}
    assert not bench.published_figures(path, 5)
    assert not bench.published_figures(tmp_path, 1)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"data": [{"paragraphs": [{}]}]}', '{"data": []}', "\udcff"]
)
def test_what_is_no_set_is_bad_input_and_named(
    rag: Callable[..., Outcome], tmp_path: Path, content: str
) -> None:
    path = tmp_path / "malo.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    for asked in (path, tmp_path / "none", tmp_path):
        refused = rag("bench", asked)
        assert refused.code == 2
        assert str(asked) in refused.err
    run = tmp_path / "malo.run"
    run.write_text("q1 Q0 d1\n", "utf-8")
    assert rag("bench", squad(tmp_path), "--run", run).code == 2
    assert rag("bench", squad(tmp_path), "--config", "nada").code == 2
