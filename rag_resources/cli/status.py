"""`rag status`: what runs, what the database contains, what serves."""

from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rag_resources.cli.output import (
    JsonOption,
    address,
    picked,
    print_table,
    say,
    show_table,
    warn,
    write_json,
)
from rag_resources.cli.session import read_settings, tell_left_out
from rag_resources.cli.survey_report import show_rejected, show_unread
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.core.configuration import NamedConfiguration
    from rag_resources.core.evidence import Evidence
    from rag_resources.database.readers import StandbyStatus
    from rag_resources.database.schema import Schema
    from rag_resources.settings import Settings
    from rag_resources.store.models import ModelContents
    from rag_resources.store.status import DatabaseStatus


def status(as_json: JsonOption = False) -> None:
    """Show the status without starting or changing anything."""
    from rag_resources.configurations import load_configurations
    from rag_resources.programs import killed_programs, running_programs

    settings = read_settings()
    programs = running_programs(settings.rag_home)
    server, url = find_server(settings)
    problem = schema_of(url).problem if url else None
    found, evidence = read_contents(url, settings) if url and not problem else (None, {})
    models = found.with_configured(settings.all_models) if found else []
    standbys = find_standbys(url, settings) if url else []
    if as_json:
        contents = _as_json(found, models, evidence) if found else None
        server["standbys"] = [picked(each, "address", "state", "behind_bytes") for each in standbys]
        write_json(
            {"server": server, "programs": programs, "database": contents, "problem": problem}
        )
        return
    say(server_in_words(server))
    for standby in standbys:
        say(
            _("Standby {address}: behind by {behind} bytes.").format(
                address=standby.address,
                behind="–" if standby.behind_bytes is None else standby.behind_bytes,
            )
        )
    for program in programs:
        say(
            _("Running: “{command}” (process {pid}) {address}").format(
                command=program.command, pid=program.pid, address=program.address or ""
            )
        )
    for program in killed_programs(settings.rag_home):
        warn(
            _(
                "“{command}” (process {pid}) was killed before its end. What is done is kept; "
                "start it again to go on."
            ).format(command=program.command, pid=program.pid)
        )
    if problem:
        say(problem)
    if found:
        configurations = load_configurations(settings.configuration_folders)
        tell_left_out(configurations)
        _show_database(found, models, settings, evidence, configurations)


def find_server(settings: "Settings") -> tuple[dict[str, Any], str | None]:
    """Describe the server; the URL is None if no server is running."""
    from rag_resources.database.locate import APPLICATION_DATABASE, embedded_server

    if settings.database_url:
        url = settings.database_url.get_secret_value()
        version, place = server_version(url), address(url)
        found = {"embedded": False, "running": True, "version": version, "address": place}
        return found, url
    server = embedded_server(settings)
    state = server.status()
    own_url = server.dsn(APPLICATION_DATABASE) if state.running else None
    described = {
        "embedded": True,
        "running": state.running,
        "exists": server.exists,
        "home": str(settings.rag_home),
        "version": state.version,
        "address": address(own_url) if own_url else None,
        "port": state.port,
        "dataDir": str(state.data_dir),
    }
    return described, own_url


def server_version(url: str) -> str:
    """Ask a server for its version, such as `16.4`."""
    from rag_resources.database.migrations import connect

    with connect(url) as connection:
        return (connection.info.parameter_status("server_version") or "").partition(" ")[0]


def find_standbys(url: str, settings: "Settings") -> "list[StandbyStatus]":
    """Return how far each standby of the settings lags."""
    from rag_resources.database.readers import look_at_standbys

    urls = [each.get_secret_value() for each in settings.database_read_url]
    return look_at_standbys(url, urls) if urls else []


def server_in_words(server: Mapping[str, Any]) -> str:
    """Say which server there is, and whether it runs."""
    if not server["embedded"]:
        return _("Own database (DATABASE_URL): PostgreSQL {version} at {address}").format(**server)
    if server["running"]:
        return _("Embedded PostgreSQL {version}, running at {address}. Data: {dataDir}").format(
            **server
        )
    if server["exists"]:
        return _("The embedded PostgreSQL is not running: use “rag up”. Data: {path}").format(
            path=server["dataDir"]
        )
    return _("There is no database in {home} (RAG_HOME). “rag run” creates it.").format(
        home=server["home"]
    )


def documents_in_words(documents: int, unread: int, missing: int) -> str:
    """Say how many documents there are, how many could not be read, and how many have no file."""
    return _(
        "Documents: {documents}; not read: {unread}; without their file: {missing}. Which: “rag "
        "document list”."
    ).format(documents=documents, unread=unread, missing=missing)


def schema_of(url: str) -> "Schema":
    """Read the schema version of a database."""
    from rag_resources.database.migrations import connect
    from rag_resources.database.schema import read_schema

    with connect(url) as connection:
        return read_schema(connection)


def read_contents(
    url: str, settings: "Settings"
) -> "tuple[DatabaseStatus, Mapping[UUID, Evidence]]":
    """Read a database with the current schema: counts, and whether its evaluations are current."""
    from rag_resources.configurations import load_configurations
    from rag_resources.database.locate import database_at
    from rag_resources.evaluation.evidence import count_and_read_evidence
    from rag_resources.store.status import read_status

    configurations = load_configurations(settings.configuration_folders)
    with (
        database_at(settings, url) as database,
        database.transaction() as connection,
    ):
        found = read_status(connection)
        evidence = count_and_read_evidence(
            connection,
            found.evaluations,
            configurations,
            settings=settings.search,
        )
        return found, evidence


def _show_database(
    found: "DatabaseStatus",
    models: "list[ModelContents]",
    settings: "Settings",
    evidence: "Mapping[UUID, Evidence]",
    configurations: "Mapping[str, NamedConfiguration]",
) -> None:
    from rag_resources.core.retrievers import VectorKind
    from rag_resources.evaluation.summary import comparison_table
    from rag_resources.migration.status import MODEL_STATES

    say(counts_in_words(found))
    if found.documents:
        say(documents_in_words(found.documents, found.unread_documents, found.missing_documents))
        show_unread(found.unread)
    show_rejected(found.rejections, found.rejected)
    say(serving_in_words(found))
    columns = (_("Model"), _("State"), _("Chunks with vectors"), _("windows"), _("Without vectors"))
    rows = [
        (
            model.name,
            MODEL_STATES[model.state],
            str(model.count(VectorKind.CHUNK)),
            str(model.count(VectorKind.WINDOW)),
            str(model.pending),
        )
        for model in models
    ]
    print_table(columns, rows)
    if found.evaluations:
        title = _("Last evaluation of each configuration")
        show_table(comparison_table(found.evaluations, settings.gate, evidence, title=title))
    else:
        say(_("There are no evaluations yet."))


def counts_in_words(found: "DatabaseStatus") -> str:
    """Say how many notes, chunks, questions and failures there are."""
    return _(
        "Notes: {notes} ({chunked} chunked). Chunks: {chunks}. Golden questions: {golden}. "
        "Indexing failures: {failures}."
    ).format(
        notes=found.notes,
        chunked=found.chunked,
        chunks=found.chunks,
        golden=found.golden,
        failures=found.failures,
    )


def serving_in_words(found: "DatabaseStatus") -> str:
    """Say what serves, and since when."""
    from rag_resources.configurations import DEFAULT_CONFIGURATION

    serving = found.promotion
    if serving is None or found.serving_since is None:
        return _("No configuration was promoted yet: until then “{default}” answers.").format(
            default=DEFAULT_CONFIGURATION
        )
    since = f"{found.serving_since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return _("“{configuration}” serves with the model {model}, since {since}.").format(
        configuration=serving.configuration, model=serving.model, since=since
    )


def _as_json(
    found: "DatabaseStatus", models: "list[ModelContents]", evidence: "Mapping[UUID, Evidence]"
) -> dict[str, Any]:
    from rag_resources.migration.status import STATE_NAMES

    serving = found.promotion
    rejections = [picked(each, "source", "root", "location", "reason") for each in found.rejections]
    described = [
        picked(
            model,
            "name",
            pending_notes="pending",
        )
        | {"vectors": dict(model.vectors), "state": STATE_NAMES[model.state]}
        | {"digest": found.present.model_digests.get(model.name)}
        for model in models
    ]
    evaluations = [
        picked(
            item,
            *("configuration", "evaluation_id", "created_at", "total_queries", "mrr", "gate"),
            *("hit_rate_at_10", "ndcg_at_10", "latency_p95_ms", "degraded_queries"),
        )
        | {"hitRateAt10Interval": [item.hit_rate_at_10_low, item.hit_rate_at_10_high]}
        | {"evidence": evidence[item.evaluation_id].state}
        | {"evidenceReasons": evidence[item.evaluation_id].reasons}
        for item in found.evaluations
    ]
    return {
        **picked(
            found,
            *("notes", "chunked", "chunks", "rejected", "isolation"),
            golden_questions="golden",
            indexing_failures="failures",
        ),
        **picked(found.present, "index_version", "golden_hash", "chunking_hashes"),
        "isolated": found.isolation != "conditions",
        "rejections": rejections,
        "models": described,
        "evaluations": evaluations,
        "serving": None
        if serving is None
        else picked(
            serving, "configuration", "model", "config_hash", "evaluation_id", "promoted_at"
        )
        | {"servingSince": found.serving_since},
    }
