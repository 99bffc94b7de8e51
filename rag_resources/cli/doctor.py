"""`rag doctor`: checks everything that support would ask about. It starts and changes nothing."""

import os
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rag_resources.cli.output import JsonOption, clean, masked, say, write_json
from rag_resources.cli.session import read_settings
from rag_resources.core.errors import RagError
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.core.configuration import RetrievalConfig
    from rag_resources.settings import Settings
    from rag_resources.store.models import ModelContents
    from rag_resources.store.status import DatabaseStatus

LEAST_FREE_GB = 2
_SERVER_TIMEOUT_S = 3.0
_GB = 1024**3


class Health(StrEnum):
    """Whether a finding is good or bad."""

    GOOD = "ok"
    WARNING = "warning"
    BAD = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """A check and its result; a bad one says what to do."""

    subject: str
    health: Health
    detail: str


def doctor(as_json: JsonOption = False) -> None:
    """Check the installation, its settings, its database and its servers."""
    findings = list(_findings())
    if as_json:
        write_json(
            {
                "healthy": not _has_bad(findings),
                "findings": [
                    {"subject": str(f.subject), "health": f.health.value, "detail": clean(f.detail)}
                    for f in findings
                ],
            }
        )
    else:
        for finding in findings:
            say(masked(f"{_MARKS[finding.health]} {finding.subject}: {finding.detail}"))
        say(_conclusion(findings))
    if _has_bad(findings):
        raise typer.Exit(1)


_MARKS = {
    Health.GOOD: _("good "),
    Health.WARNING: _("mind "),
    Health.BAD: _("bad  "),
}


def _has_bad(findings: list[Finding]) -> bool:
    return any(finding.health is Health.BAD for finding in findings)


def _conclusion(findings: list[Finding]) -> str:
    if _has_bad(findings):
        return _("There are faults: the lines that begin with “bad”.")
    warned = any(finding.health is Health.WARNING for finding in findings)
    return (
        _("Nothing is broken, but look at the lines that start with “mind”.")
        if warned
        else _("No fault was found.")
    )


def _findings() -> Iterator[Finding]:
    yield _product()
    try:
        settings = read_settings()
    except RagError as error:
        yield Finding(_("Settings"), Health.BAD, error.message)
        return
    yield from _settings(settings)
    yield from _values(settings)
    yield from _sources(settings)
    yield from _servers(settings)
    yield from _database(settings)


def _product() -> Finding:
    from rag_resources.database.schema import schema_version
    from rag_resources.packaged import product_version

    detail = _("version {version}, schema {schema}, Python {python}, {system}").format(
        version=product_version(),
        schema=schema_version(),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
    )
    return Finding(_("Program"), Health.GOOD, detail)


def _settings(settings: "Settings") -> Iterator[Finding]:
    from rag_resources.languages.formats import number
    from rag_resources.languages.messages import operators
    from rag_resources.settings import env_file_problems, unknown_variables

    for problem in env_file_problems():
        yield Finding(".env", Health.WARNING, problem)
    if unknown := unknown_variables():
        told = _(
            "Names in .env that are no settings of this program and change nothing: {names}"
        ).format(names=", ".join(unknown))
        yield Finding(".env", Health.WARNING, told)
    home = settings.rag_home
    present = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(present).free / _GB
    writable = present.is_dir() and os.access(present, os.W_OK)
    detail = _("{home}, with {free} GB free").format(home=home, free=number(free, 1, operators()))
    if not writable:
        detail = _(
            "{path} (RAG_HOME) cannot be written. Give permission to write, or choose another "
            "folder with RAG_HOME."
        ).format(path=home)
    elif free < LEAST_FREE_GB:
        detail += _("; free some space: with less than {least} GB the database may stop").format(
            least=LEAST_FREE_GB
        )
    healthy = Health.GOOD if free >= LEAST_FREE_GB else Health.WARNING
    yield Finding("RAG_HOME", healthy if writable else Health.BAD, detail)


def _values(settings: "Settings") -> Iterator[Finding]:
    """Report the values that other commands would refuse when they first use them."""
    from rag_resources.core.errors import InvalidParameterError
    from rag_resources.database.ports import has_address
    from rag_resources.providers.registry import build_language_model

    def check_address(variable: str, host: str) -> None:
        if not has_address(host):
            raise InvalidParameterError(
                _(
                    "This machine does not have the address “{host}”, or the name is not known: "
                    "correct {variable}."
                ).format(host=host, variable=variable)
            )

    checks: tuple[Callable[[], object], ...] = (
        lambda: build_language_model(settings.llm_model, settings.servers),
        lambda: check_address("API_HOST", settings.api_host),
        lambda: check_address("UI_HOST", settings.ui_host),
    )
    for check in checks:
        try:
            check()
        except RagError as error:
            yield Finding(_("Settings"), Health.BAD, error.message)


def _sources(settings: "Settings") -> Iterator[Finding]:
    named = {
        "NOTES_SOURCE": settings.notes_source,
        "GOLDEN_SOURCE": settings.golden_source,
        "RAG_CONFIGURATIONS": settings.rag_configurations,
    }
    for name, path in named.items():
        if path is not None:
            yield _path(name, path)
    if settings.rag_configurations is None or settings.rag_configurations.is_dir():
        from rag_resources.configurations import load_configurations

        for problem in load_configurations(settings.configuration_folders).problems:
            detail = _("A configuration with an error is left out. {problem}").format(
                problem=problem
            )
            yield Finding(_("Configurations"), Health.WARNING, detail)
    documents = settings.documents_source
    if documents and "://" in documents:
        from rag_resources.documents.web import without_credentials

        yield Finding("DOCUMENTS_SOURCE", Health.GOOD, without_credentials(documents))
    elif documents:
        yield _path("DOCUMENTS_SOURCE", Path(documents))
    if not settings.notes_source:
        told = (
            _("not set: the sample is used")
            if settings.sample_by_default
            else _("not set: another program fills the table of notes")
        )
        yield Finding("NOTES_SOURCE", Health.GOOD, told)


def _path(name: str, path: Path) -> Finding:
    if path.exists() and os.access(path, os.R_OK):
        return Finding(name, Health.GOOD, str(path))
    return Finding(
        name,
        Health.BAD,
        _("{path} does not exist or cannot be read. Correct the path or the permissions.").format(
            path=path
        ),
    )


def _servers(settings: "Settings") -> Iterator[Finding]:
    from rag_resources.documents.web import without_credentials

    models = (*settings.all_models, settings.llm_model or "")
    asked = []
    if settings.ollama_host or any(name.startswith("ollama") for name in models):
        host = settings.ollama_host or "http://127.0.0.1:11434"
        host = host if "://" in host else f"http://{host}"
        asked.append(("OLLAMA_HOST", host, f"{host.rstrip('/')}/api/tags", ""))
    if settings.openai_base_url:
        key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else ""
        base = settings.openai_base_url
        asked.append(("OPENAI_BASE_URL", base, f"{base.rstrip('/')}/models", key))
    for name, address, url, key in asked:
        answered, said = _answer_of(url, key=key)
        shown = without_credentials(address)
        template = (
            _("answers at {address} ({said})")
            if answered
            else _("does not serve at {address}: {said}. Check that it is started, and {variable}.")
        )
        detail = template.format(address=shown, said=said, variable=name)
        yield Finding(name, Health.GOOD if answered else Health.BAD, detail)


def _database(settings: "Settings") -> Iterator[Finding]:
    from rag_resources.cli.status import find_server, read_contents, schema_of

    subject = _("Database")
    try:
        server, url = find_server(settings)
        if url is None:
            told = _(
                "There is no database in {home} (RAG_HOME). “rag run” creates it, or “rag up” an "
                "empty one."
            ).format(home=settings.rag_home)
            if server["exists"]:
                told = _(
                    "The embedded PostgreSQL is not running: use “rag up”. Data: {path}"
                ).format(path=server["dataDir"])
            yield Finding(subject, Health.WARNING, told)
            return
        problem = schema_of(url).problem
        if problem:
            yield Finding(subject, Health.BAD, problem)
            return
        detail = _("PostgreSQL {version} at {address}, with an up-to-date schema").format(
            version=server["version"], address=server["address"]
        )
        yield Finding(subject, Health.GOOD, detail)
        contents, __ = read_contents(url, settings)
    except RagError as error:
        yield Finding(subject, Health.BAD, error.message)
        return
    yield from _contents(contents, settings)


def _contents(found: "DatabaseStatus", settings: "Settings") -> Iterator[Finding]:
    from rag_resources.cli.status import counts_in_words, documents_in_words, serving_in_words
    from rag_resources.core.configuration import usable_retrieval

    counts = counts_in_words(found)
    missing = not found.notes or found.failures or not found.golden
    yield Finding(_("Contents"), Health.WARNING if missing else Health.GOOD, counts)
    if found.documents:
        amiss = found.unread_documents or found.missing_documents
        health = Health.WARNING if amiss else Health.GOOD
        detail = documents_in_words(
            found.documents, found.unread_documents, found.missing_documents
        )
        yield Finding(_("Documents"), health, detail)
    if found.rejected:
        detail = _(
            "the last reading could not read {count}. “rag status” says which and why. Correct "
            "each in its file; the next run picks it up."
        ).format(count=found.rejected)
        yield Finding(_("Records"), Health.WARNING, detail)
    serving = found.promotion
    health = Health.GOOD if serving else Health.WARNING
    yield Finding(_("Configuration"), health, serving_in_words(found))
    if serving is None:
        return
    config = usable_retrieval(serving.config, origin=serving.configuration)
    if off := settings.warning_about(serving.configuration, config):
        yield Finding(_("Configuration"), Health.WARNING, off)
    if found.chunks and lacks_windows(config, found.models):
        detail = _(
            "“{configuration}” searches by windows, and there are none of its model: searches go "
            "without them, and find less. Run “rag run”, or materialise embeddings/{model} (if "
            "there is no such asset, add the model to EMBEDDING_MODELS)."
        ).format(configuration=serving.configuration, model=serving.model)
        yield Finding(_("Configuration"), Health.WARNING, detail)


def lacks_windows(config: "RetrievalConfig | None", models: "Iterable[ModelContents]") -> bool:
    """Whether what serves searches by windows, and its model has none."""
    from rag_resources.core.retrievers import VectorKind

    windows = {model.name: model.count(VectorKind.WINDOW) for model in models}
    return config is not None and config.searches_windows and not windows.get(config.model)


def _answer_of(url: str, *, key: str) -> tuple[bool, str]:
    """Ask a server for its models; return whether it gave some, and its status or the error."""
    import httpx

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.get(url, headers=headers, timeout=_SERVER_TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return False, " ".join(str(error).split())
    return answer.is_success, f"HTTP {answer.status_code}"
