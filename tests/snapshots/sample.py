"""What the product answers about the sample: the JSON of its commands, and its HTTP answers.

The sample is indexed once, by `rag run`, in a folder of its own; every recording works on a copy of
its database, so that it may change it.
"""

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from contextvars import copy_context
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import httpx

from rag_resources.cli import main
from rag_resources.database.server import EmbeddedServer
from rag_resources.settings import Settings
from tests.databases import cloned
from tests.snapshots.comparison import masked

ROOT = Path(__file__).parents[2]
HOME = Path(os.environ.get("SNAPSHOT_HOME", ROOT / "build" / "snapshots"))

QUESTION = "¿Cuánto nos pedían en Tavernes por la dirección de la furgoneta?"
NOTE = "2024-11-12-acta-cal-viva"
GOLDEN = {
    "query": QUESTION,
    "relevantNotes": [NOTE],
    "expectedAnswer": "690 €",
    "category": "factual",
    "difficulty": 2,
}
UPLOAD = {"file": ("acta.md", b"# Acta de marzo\n\nLa bomba nueva cuesta 690 euros.\n")}

COMMANDS = (
    f'retrieve "{QUESTION}" --json',
    f'retrieve "{QUESTION}" --config fulltext --top-k 2 --filter tag=trabajo --json',
    f'retrieve "{QUESTION}" --config ninguna --json',
    f'ask "{QUESTION}" --json',
    "answers list --json",
    "answers show {answer} --json",
    "feedback {answer} up --json",
    "status --json",
    "doctor --json",
    "migration status --json",
    "notes list --limit 3 --json",
    f"notes show {NOTE} --json",
    f"notes delete {NOTE} --yes --json",
    "notes list --deleted --json",
    f"notes restore {NOTE} --json",
    "document list --json",
    "golden list --category causal --json",
    f'golden add "{QUESTION}" --note {NOTE} --answer 690 --category factual --difficulty 2 --json',
    "golden show {golden} --json",
    "golden update {golden} --difficulty 3 --json",
    "golden delete {golden} --yes --json",
    "golden drift --json",
    "golden export golden.json --json",
    "golden validate golden.json --json",
    "golden import golden.json --json",
    "glossary add PMV 'producto mínimo viable' --json",
    "glossary list --json",
    "glossary remove PMV --json",
    "key create cuadro --role reader --json",
    "key list --json",
    "key revoke {key} --json",
    "tenant create otra --json",
    "tenant list --json",
    "tenant delete otra --yes --json",
    "evaluate fulltext --json",
    "compare baseline fulltext --json",
    "calibrate --config fulltext --json",
    "experiment experiment.yaml --json",
    "report --output report.html --json",
    "promote hybrid_windows --json",
    "rollback --reason snapshot --json",
    "ingest {root}/rag_assets/sample/notes/2024-11 --json",
)

EXPERIMENT = """
name: snapshot
base: fulltext
grid:
  top_k.final: [5, 10]
"""

HEADERS = {"Accept": "application/json, text/event-stream", "Accept-Language": "es"}
REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/healthz", None),
    ("GET", "/readyz", None),
    ("GET", "/v1/me", None),
    ("GET", "/v1/tags?limit=3", None),
    ("GET", "/v1/models", None),
    ("POST", "/v1/retrieve", {"query": QUESTION}),
    ("POST", "/v1/retrieve", {"query": QUESTION, "configuration": "baseline", "topK": 2}),
    ("POST", "/v1/retrieve", {"query": QUESTION, "configuration": "ninguna"}),
    ("POST", "/v1/retrieve", {"query": QUESTION, "filters": {"tags": ["trabajo"]}}),
    ("POST", "/v1/retrieve", {"query": "", "top": 3}),
    ("POST", "/api/retrieve", {"query": QUESTION, "config": {"strategy": "fulltext"}}),
    ("POST", "/api/v1/query", {"query": QUESTION, "topK": 2}),
    ("POST", "/v1/answers", {"query": QUESTION}),
    ("POST", "/v1/answers", {"query": QUESTION, "stream": True}),
    ("POST", "/v1/answers", {"query": "¿Quién ganó el mundial de 1930?"}),
    ("POST", "/v1/feedback", {"answerId": "{answer}", "verdict": "up"}),
    (
        "POST",
        "/v1/chat/completions",
        {"model": "rag", "messages": [{"role": "user", "content": QUESTION}]},
    ),
    ("GET", "/v1/notes/{note}", None),
    ("POST", "/v1/documents", UPLOAD),
    ("POST", "/api/v1/documents/ingest", UPLOAD),
    ("GET", "/v1/documents?limit=2", None),
    ("GET", "/v1/documents/{document}", None),
    ("GET", "/v1/documents/{document}/pages/1", None),
    ("DELETE", "/v1/documents/{document}", None),
    ("GET", "/v1/documents/{document}", None),
    ("GET", "/v1/golden-dataset?limit=2", None),
    ("POST", "/v1/golden-dataset", GOLDEN),
    ("GET", "/v1/golden-dataset/{golden}", None),
    ("PATCH", "/v1/golden-dataset/{golden}", {"difficulty": 3}),
    ("DELETE", "/v1/golden-dataset/{golden}", None),
    ("GET", "/v1/golden-dataset/export", None),
    ("POST", "/v1/golden-dataset/import", {"entries": [GOLDEN]}),
    ("GET", "/v1/evaluations?limit=2", None),
    ("GET", "/v1/evaluations/{evaluation}", None),
    ("POST", "/v1/evaluations", {"configuration": "fulltext"}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    (
        "POST",
        "/mcp",
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "search_notes", "arguments": {"query": QUESTION, "limit": 2}},
        },
    ),
    ("GET", "/v1/nothing", None),
)


def prepare() -> None:
    """Index the sample, unless it is already with the present schema."""
    schema = b"".join(path.read_bytes() for path in sorted((ROOT / "sql/migrations").iterdir()))
    stamp, made = HOME / "schema", sha256(schema).hexdigest()
    if stamp.exists() and stamp.read_text("utf-8") == made:
        return
    variables = environment(RAG_HOME=str(HOME))
    subprocess.run([sys.executable, "-m", "rag_resources.cli", "down"], env=variables, check=True)
    shutil.rmtree(HOME, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "rag_assets", "run"], env=variables, check=True)
    stamp.write_text(made, "utf-8")


@contextmanager
def sample_copy() -> Iterator[str]:
    """Lend the address of a copy of the sample's database."""
    server = EmbeddedServer(HOME)
    server.up()
    with cloned(server, "rag") as (name,):
        yield server.dsn(name)


def commands(folder: Path, database_url: str) -> dict[str, Any]:
    """Return exit code and JSON of the commands, masked; they run in this process, in a folder."""
    (folder / "experiment.yaml").write_text(EXPERIMENT, "utf-8")
    known = {"folder": str(folder), "root": str(ROOT)}
    found = {}
    variables = {"RAG_HOME": str(folder / "home"), "DATABASE_URL": database_url}
    with mock.patch.dict(os.environ, environment(**variables), clear=True), chdir(folder):
        for command in COMMANDS:
            code, out = _called(shlex.split(_filled(command, known)))
            # What is only said to people may be worded anew.
            said = json.loads(out) if out.strip() else None
            known |= _ids(command, said)
            found[f"rag {command}"] = {"code": code, "json": masked(_unfilled(said, known))}
    return found


def answers(client: httpx.Client) -> dict[str, Any]:
    """Return status and body of the HTTP answers, masked."""
    known: dict[str, str] = {}
    found = {}
    for number, (method, path, body) in enumerate(REQUESTS, 1):
        answer = client.request(
            method,
            _filled(path, known),
            headers=HEADERS,
            files=body if body is UPLOAD else None,
            json=None if body is UPLOAD or body is None else _with(body, known),
        )
        said = _said(answer)
        if answer.is_error:  # Its sentences may be worded anew.
            said = sorted(said)
        known |= _ids(f"{method} {path}", said)
        found[f"{number:02} {method} {path}"] = {
            "status": answer.status_code,
            "body": masked(_unfilled(said, known)),
        }
    return found


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of a process with these settings and no others."""
    kept = {k: v for k, v in os.environ.items() if k.lower() not in Settings.model_fields}
    return kept | {"COLUMNS": "200"} | variables


def _called(arguments: list[str]) -> tuple[int, str]:
    out, unread, stdin = io.StringIO(), io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(unread), mock.patch("sys.stdin", stdin):
        try:
            copy_context().run(main, arguments)
        except SystemExit as ended:
            return int(ended.code or 0), out.getvalue()


def _said(answer: httpx.Response) -> Any:
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if kind.endswith("json"):
        return answer.json()
    if kind == "text/event-stream":
        events = [line.partition(": ") for line in answer.text.splitlines() if line]
        return [
            {name: json.loads(text) if text.startswith("{") else text} for name, _, text in events
        ]
    return kind


IDS = {
    "ask": {"answer": "answerId"},
    "golden add": {"golden": "id"},
    "key create": {"key": "id", "secret": "key"},
    "POST /v1/retrieve": {"note": "noteId"},
    "POST /v1/answers": {"answer": "answerId"},
    "POST /v1/golden-dataset": {"golden": "id"},
    "POST /v1/documents": {"document": "id"},
    "GET /v1/evaluations?limit=2": {"evaluation": "id"},
}
"""The values of answers that later calls name: for each its name there, and the field here."""


def _ids(call: str, said: Any) -> dict[str, str]:
    wanted = next((ids for prefix, ids in IDS.items() if call.startswith(prefix)), {})
    found = {name: _first(said, field) for name, field in wanted.items()}
    return {name: str(value) for name, value in found.items() if value}


def _first(value: Any, field: str) -> Any:
    if isinstance(value, dict) and field in value:
        return value[field]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for each in inner if (found := _first(each, field))), None)


def _with(body: Any, known: dict[str, str]) -> Any:
    return json.loads(_filled(json.dumps(body), known))


def _filled(text: str, known: dict[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _unfilled(said: Any, known: dict[str, str]) -> Any:
    text = json.dumps(said, ensure_ascii=False)
    for name, value in known.items():
        text = text.replace(value, f"<{name}>")
    return json.loads(text)
