"""`rag doctor`: checks everything that support would ask about. It starts and changes nothing."""

import os
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import typer

from rag_resources.cli.output import JsonOption, clean, masked, say, write_json
from rag_resources.cli.session import read_settings
from rag_resources.core.errors import InvalidParameterError, RagError
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.core.configuration import RetrievalConfig
    from rag_resources.settings import Settings
    from rag_resources.store.models import ModelContents

LEAST_FREE_GB = 2
_SERVER_TIMEOUT_S = 3.0

GOOD, WARNING, BAD = "ok", "warning", "error"
_MARKS = {GOOD: _("good "), WARNING: _("mind "), BAD: _("bad  ")}


class Finding(NamedTuple):
    """A check and its result; a bad one says what to do."""

    subject: str
    health: str
    detail: str


def doctor(as_json: JsonOption = False) -> None:
    """Check the installation, its settings, its database and its servers."""
    findings = list(_findings())
    has_bad = any(each.health == BAD for each in findings)
    if as_json:
        rows = [each._asdict() | {"detail": clean(each.detail)} for each in findings]
        write_json({"healthy": not has_bad, "findings": rows})
    else:
        for each in findings:
            say(masked(f"{_MARKS[each.health]} {each.subject}: {each.detail}"))
    if has_bad:
        raise typer.Exit(1)


def _findings() -> Iterator[Finding]:
    from rag_resources.database.schema import schema_version
    from rag_resources.packaged import product_version

    detail = _("version {version}, schema {schema}, Python {python}, {system}").format(
        version=product_version(),
        schema=schema_version(),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
    )
    yield Finding(_("Program"), GOOD, detail)
    try:
        settings = read_settings()
    except RagError as error:
        yield Finding(_("Settings"), BAD, error.message)
        return
    yield from _settings(settings)
    yield from _sources(settings)
    yield from _servers(settings)
    try:
        yield from _database(settings)
    except RagError as error:
        yield Finding(_("Database"), BAD, error.message)


def _settings(settings: "Settings") -> Iterator[Finding]:
    from rag_resources.database.ports import has_address
    from rag_resources.languages.formats import number
    from rag_resources.languages.messages import operators
    from rag_resources.providers.registry import build_language_model
    from rag_resources.settings import env_file_problems, unknown_variables

    for problem in env_file_problems():
        yield Finding(".env", WARNING, problem)
    if unknown := unknown_variables():
        told = _("Names in .env that are no settings of this program: {names}").format(
            names=", ".join(unknown)
        )
        yield Finding(".env", WARNING, told)
    home = settings.rag_home
    present = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(present).free / 1024**3
    if present.is_dir() and os.access(present, os.W_OK):
        detail = _("{home}, with {free} GB free").format(
            home=home, free=number(free, 1, operators())
        )
        yield Finding("RAG_HOME", GOOD if free >= LEAST_FREE_GB else WARNING, detail)
    else:
        detail = _(
            "{path} cannot be written: check the folder, the permissions and the free space."
        ).format(path=home)
        yield Finding("RAG_HOME", BAD, detail)

    def check_address(variable: str, host: str) -> None:
        if not has_address(host):
            raise InvalidParameterError(
                _("{setting} is not a valid address: “{host}”.").format(setting=variable, host=host)
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
            yield Finding(_("Settings"), BAD, error.message)


def _sources(settings: "Settings") -> Iterator[Finding]:
    from rag_resources.configurations import load_configurations

    documents = settings.documents_source
    named = {
        "NOTES_SOURCE": settings.notes_source,
        "GOLDEN_SOURCE": settings.golden_source,
        "RAG_CONFIGURATIONS": settings.rag_configurations,
        "DOCUMENTS_SOURCE": documents if documents and "://" not in documents else None,
    }
    for name, path in named.items():
        if path is None:
            continue
        is_read = os.access(path, os.R_OK)
        told = (
            str(path)
            if is_read
            else _("{path} cannot be read: check the path, the permissions and the disk.").format(
                path=path
            )
        )
        yield Finding(name, GOOD if is_read else BAD, told)
    if settings.rag_configurations is None or settings.rag_configurations.is_dir():
        for problem in load_configurations(settings.configuration_folders).problems:
            yield Finding(_("Configurations"), WARNING, problem)


def _servers(settings: "Settings") -> Iterator[Finding]:
    import httpx

    from rag_resources.documents.web import without_credentials

    models = (*settings.all_models, settings.llm_model or "")
    asked = []
    if settings.ollama_host or any(name.startswith("ollama") for name in models):
        host = settings.ollama_host or "http://127.0.0.1:11434"
        host = host if "://" in host else f"http://{host}"
        asked.append(("OLLAMA_HOST", host, "/api/tags", ""))
    if base := settings.openai_base_url:
        key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else ""
        asked.append(("OPENAI_BASE_URL", base, "/models", key))
    for name, address, path, key in asked:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            answer = httpx.get(
                address.rstrip("/") + path, headers=headers, timeout=_SERVER_TIMEOUT_S
            )
            is_json = "json" in answer.headers.get("content-type", "")
            answered, said = answer.is_success and is_json, f"HTTP {answer.status_code}"
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            answered, said = False, " ".join(str(error).split())
        template = (
            _("answers at {address} ({said})") if answered else _("no models at {address}: {said}.")
        )
        detail = template.format(address=without_credentials(address), said=said)
        yield Finding(name, GOOD if answered else BAD, detail)


def _database(settings: "Settings") -> Iterator[Finding]:
    from rag_resources.cli.status import (
        counts_in_words,
        documents_in_words,
        find_server,
        read_contents,
        schema_of,
        server_in_words,
        serving_in_words,
    )
    from rag_resources.core.configuration import usable_retrieval

    server, url = find_server(settings)
    yield Finding(_("Database"), GOOD if url else WARNING, server_in_words(server))
    if url is None:
        return
    if problem := schema_of(url).problem:
        yield Finding(_("Database"), BAD, problem)
        return
    found, __ = read_contents(url, settings)
    is_missing = not found.notes or found.failures or not found.golden or found.rejected
    yield Finding(_("Contents"), WARNING if is_missing else GOOD, counts_in_words(found))
    if found.documents:
        amiss = (found.unread_documents, found.missing_documents)
        told = documents_in_words(found.documents, *amiss)
        yield Finding(_("Documents"), WARNING if any(amiss) else GOOD, told)
    serving = found.promotion
    yield Finding(_("Configuration"), GOOD if serving else WARNING, serving_in_words(found))
    if serving is None:
        return
    config = usable_retrieval(serving.config, origin=serving.configuration)
    if off := settings.warning_about(serving.configuration, config):
        yield Finding(_("Configuration"), WARNING, off)
    if found.chunks and lacks_windows(config, found.models):
        told = _("The windows of {model} are missing: “rag run” makes them.").format(
            model=serving.model
        )
        yield Finding(_("Configuration"), WARNING, told)


def lacks_windows(config: "RetrievalConfig | None", models: "Iterable[ModelContents]") -> bool:
    """Whether what serves searches by windows, and its model has none."""
    from rag_resources.core.retrievers import VectorKind

    windows = {model.name: model.count(VectorKind.WINDOW) for model in models}
    return config is not None and config.searches_windows and not windows.get(config.model)
