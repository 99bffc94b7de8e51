"""How sure responses are, on a real index: measured, stored, told, and stale when things change."""

import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from rag_resources.application.answers import Answers, Asked
from rag_resources.application.confidence import Confidences
from rag_resources.application.wiring import Answered
from rag_resources.core.confidence import Claim, Confidence
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.gate import GateConfig
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.types import RetrievalResponse
from rag_resources.database.pool import Database
from rag_resources.evaluation.calibration import read_calibration, train_calibration
from rag_resources.golden.files import read_unanswerable
from rag_resources.languages.messages import _
from rag_resources.settings import Settings, load_settings
from rag_resources.store.contents import count_contents, forget_contents
from tests.command_line import call_rag, isolate
from tests.evaluated_corpus import SETTINGS, Evaluated
from tests.language_models import ScriptedModel, reply

CONFIG = RetrievalConfig(model="openai_hash", strategy="fulltext")
NOTES = 60
GATE = GateConfig()


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Evaluated:
    """Half of the questions name what their note says, half ask for what no note says."""
    made = Evaluated.filled(database, NOTES)
    made.ask_for(range(NOTES // 2))
    return made


@pytest.fixture
def unanswerable(tmp_path: Path) -> list[GoldenEntry]:
    rows = [
        {"query": f"¿Qué dice dentro de tema{n}?", "tags": ["hoy"] if n else []} for n in range(30)
    ]
    path = tmp_path / "sin_respuesta.json"
    path.write_text(json.dumps({"entries": [*rows, rows[0]]}), encoding="utf-8")
    found = read_unanswerable(path)
    assert len(found) == 30
    assert len(read_unanswerable(path, tag="hoy")) == 29
    return found


def calibrated(corpus: Evaluated, unanswerable: list[GoldenEntry]) -> None:
    found = train_calibration(
        corpus.database, corpus.pipeline(), CONFIG, unanswerable=unanswerable, settings=SETTINGS
    )
    assert (found.calibration.questions, found.calibration.unanswerable) == (60, 30)
    assert found.measured[Claim.RESULTS].auc > 0.95
    assert found.calibration.claims.keys() == set(Claim)


def missing(corpus: Evaluated, config: RetrievalConfig = CONFIG) -> str | None:
    with corpus.database.transaction() as connection:
        count_contents(connection)
        return read_calibration(connection, config, settings=SETTINGS).missing


def test_a_calibration_stands_for_one_configuration_and_for_what_it_searched(
    corpus: Evaluated, unanswerable: list[GoldenEntry]
) -> None:
    """Few changed notes change nothing; many do, and so does another model."""
    assert missing(corpus) == _(
        "“rag calibrate” is missing, which takes 20 questions that succeed and 20 that fail"
    )
    calibrated(corpus, unanswerable)
    assert missing(corpus) is None
    assert missing(corpus, CONFIG.model_copy(update={"contextual": False})) is not None
    edit = "UPDATE notes SET title = 'asunto99' WHERE external_id::int >= {} RETURNING 1"
    corpus.fetch(edit.format(NOTES - 1))
    with corpus.database.transaction() as connection:
        count_contents(connection)
        forget_contents(connection)  # What the calibration was measured on is still known.
    assert missing(corpus) is None
    corpus.fetch(edit.format(NOTES - 5))
    assert missing(corpus) == _(
        "the notes or the model have changed since it was measured (“rag calibrate” repeats it)"
    )
    calibrated(corpus, unanswerable)
    assert missing(corpus) is None
    corpus.make_model_again()
    assert missing(corpus) == _(
        "the notes or the model have changed since it was measured (“rag calibrate” repeats it)"
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(
        rag_home=tmp_path, tenant=SETTINGS.tenant, note_embedding_model="openai_hash"
    )


def test_a_response_is_judged_only_if_it_is_made_as_those_measured(
    corpus: Evaluated, unanswerable: list[GoldenEntry], settings: Settings
) -> None:
    """A question that its note answers is in the high band, one that none does in the low one."""
    pipeline = corpus.pipeline()
    judge = Confidences(corpus.database, settings, pipeline=lambda: pipeline)

    def judged(
        query: str, *, filtered: bool = False, top_k: int | None = None, budget_ms: float = 2_000
    ) -> Confidence | None:
        response: RetrievalResponse = pipeline.retrieve(query, CONFIG, top_k=top_k)
        deadline = Deadline.after(budget_ms, time.monotonic)
        return judge.judge(
            query, CONFIG, response, is_filtered=filtered, top_k=top_k, deadline=deadline
        )

    calibrated(corpus, unanswerable)
    known, unknown = judged("¿Qué dice de asunto40?"), judged("¿Qué dice dentro de tema40?")
    assert known is not None
    assert unknown is not None
    assert known.missing is unknown.missing is None
    assert (known.bands[Claim.RESULTS].name, unknown.bands[Claim.RESULTS].name) == ("high", "low")
    assert known.bands[Claim.RESULTS].precision > 0.9 > 0.1 > unknown.bands[Claim.RESULTS].precision
    for other in (judged("¿asunto40?", filtered=True), judged("¿asunto40?", top_k=1)):
        assert other is not None
        assert other.missing == _(
            "it is measured without filters, with every stage and with all results of the "
            "configuration"
        )
    more = judged("¿Qué dice de asunto40?", top_k=20)
    assert more == known
    assert judged("¿xyzzy?") is None


def test_a_language_model_is_not_asked_what_is_not_answered(
    corpus: Evaluated, unanswerable: list[GoldenEntry], settings: Settings
) -> None:
    """It is asked what is, and its answer has no band: that was measured of sentences."""
    pipeline = corpus.pipeline()
    calibrated(corpus, unanswerable)
    model = ScriptedModel(reply(("La nota 40 habla de asunto40, o eso parece.", [1])))
    answers = Answers(
        corpus.database,
        settings,
        lambda query, **_: Answered("x", pipeline.retrieve(query, CONFIG), CONFIG),
        model,
        embedder=lambda _: corpus.embedder,
        judge=Confidences(corpus.database, settings, pipeline=lambda: pipeline).judge_answer,
        log=lambda _asked, _language: None,
    )
    (silent,) = answers.stream("¿Qué dice dentro de tema40?")
    assert isinstance(silent, Asked)
    assert silent.silence
    assert silent.silence.is_silent
    assert (silent.answer.sentences, model.calls) == ((), [])
    assert silent.answer.notice == _(
        "I found no relevant information in your notes about this question."
    )
    assert "silence" in silent.to_json()
    asked = answers.ask("¿Qué dice de asunto40?")
    assert asked.answer.found
    assert len(model.calls) == 1
    assert asked.silence
    assert not asked.silence.is_silent
    assert asked.confidence
    assert asked.confidence.bands == {}
    assert asked.confidence.missing == _(
        "it was measured with another way of answering, or in another language (“rag calibrate” "
        "repeats it)"
    )


@pytest.mark.parametrize("allowed", [0.0, 0.5])
def test_a_setting_says_how_many_may_be_left_unanswered(
    corpus: Evaluated, unanswerable: list[GoldenEntry], settings: Settings, allowed: float
) -> None:
    """It holds at once, without measuring again."""
    pipeline = corpus.pipeline()
    calibrated(corpus, unanswerable)
    own = settings.model_copy(update={"answer_allowed_misses": allowed})
    judge = Confidences(corpus.database, own, pipeline=lambda: pipeline)
    silent = 0
    for number in range(30):
        query = f"¿Qué dice de asunto{number}?"
        found = judge.judge_answer(
            query,
            CONFIG,
            pipeline.retrieve(query, CONFIG),
            is_filtered=False,
            top_k=None,
            language="es",
        )
        assert found.silence.point
        assert found.silence.point.allowed == allowed
        silent += found.silence.is_silent
    assert silent <= 30 * allowed


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE calibrations RENAME TO calibrations_away",
        # As another version may have written it.
        "INSERT INTO calibrations (config_hash, calibration, contents, measured_at)"
        f" VALUES ('{CONFIG.config_hash}', '{{\"claims\": {{\"else\": {{}}}}}}', '{{}}', now())",
    ],
)
def test_a_calibration_that_cannot_be_read_costs_no_response(
    corpus: Evaluated, settings: Settings, change: str
) -> None:
    pipeline = corpus.pipeline()
    response = pipeline.retrieve("¿Qué dice de asunto4?", CONFIG)
    judge = Confidences(corpus.database, settings, pipeline=lambda: pipeline)
    with corpus.database.transaction() as connection:
        connection.execute(change)
    found = judge.judge(
        "¿?",
        CONFIG,
        response,
        is_filtered=False,
        top_k=None,
        deadline=Deadline.after(2_000, time.monotonic),
    )
    assert found is not None
    assert found.missing == _("it could not be read")


OWN = """
name: propia
description: De las pruebas.
role: candidate
retrieval: {strategy: fulltext, model: openai_hash, contextual: false}
"""
COMMANDS = (
    "calibrate --config fulltext --unanswerable sin_respuesta.json",
    "retrieve '¿Qué dice de asunto40?' --config fulltext",
    "ask '¿Qué dice dentro de tema40?' --config fulltext",
    "ask '¿Qué dice de asunto40?' --config fulltext",
    "answers list",
    "answers show {answer}",
    "feedback {answer} down --citation 1 --comment No",
    "evaluate fulltext",
    "evaluate propia",
    "compare fulltext propia",
    "experiment experimento.yaml",
    "promote propia",
)


def test_the_commands_tell_people_and_programs(
    corpus: Evaluated,
    unanswerable: list[GoldenEntry],
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "propias").mkdir()
    (tmp_path / "propias" / "propia.yaml").write_text(OWN)
    experiment = "name: x\nbase: propia\ngrid: {top_k.final: [5, 10]}\n"
    (tmp_path / "experimento.yaml").write_text(experiment)
    isolate(
        monkeypatch,
        tmp_path,
        DATABASE_URL=database_url,
        TENANT="ana",
        RAG_CONFIGURATIONS="propias",
    )
    told: dict[str, Any] = {}
    for command in COMMANDS:
        line = command.format(answer=told.get("ask", {}).get("answerId"))
        shown = call_rag(monkeypatch, capsys, *shlex.split(line))
        assert (shown.code, bool(shown.out)) == (0, True), (line, shown.err)
        told[line.split()[0]] = call_rag(monkeypatch, capsys, *shlex.split(line), "--json").json
    assert (told["calibrate"]["questions"], told["calibrate"]["unanswerable"]) == (60, 30)
    assert told["retrieve"]["confidence"]["results"]["band"] == "high"
    assert told["ask"]["sentences"][0]["citations"][0]["externalId"] == "40"
    assert told["feedback"]["verdict"] == "down"
    assert {each["verdict"] for each in told["compare"]["metrics"]} == {"no evidence"}
    assert told["promote"]["configuration"] == "propia"
    for wrong in ("rollback", "rollback nada --reason x", "feedback ffffffff up"):
        assert call_rag(monkeypatch, capsys, *wrong.split()).code == 2
    back = call_rag(monkeypatch, capsys, "rollback", "--reason", "x")
    assert (back.code, bool(back.err)) == (1, True)  # Nothing served before.
