"""The environment, parsed once into a frozen object. Retrieval has its own configuration."""

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict, SettingsError

from rag_resources.core.answers import CONTEXT_TOKENS, MAX_CONTEXT_TOKENS
from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig
from rag_resources.core.errors import (
    InvalidConfigurationError,
    InvalidParameterError,
    unreadable,
)
from rag_resources.core.evidence import SearchSettings
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.core.gate import GateConfig
from rag_resources.core.model_names import is_model_name, language_model, unknown_model
from rag_resources.core.path_pattern import PathPattern
from rag_resources.core.periods import MADRID
from rag_resources.core.quoting import shown
from rag_resources.core.servers import Servers
from rag_resources.core.silence import ALLOWED_MISSES, MOST_ALLOWED_MISSES
from rag_resources.core.validation import describe_problems
from rag_resources.env_file import ENV_FILE, malformed_lines, present_values
from rag_resources.languages.messages import Text, _
from rag_resources.packaged import packaged

SAMPLE = packaged("rag_assets", "sample")
CONFIGURATIONS = packaged("rag_assets", "configurations")
FILES_SCHEMES = ("file", "s3", "gs", "az")
MAX_TENANT_CHARS = 100
SAMPLE_SOURCE = "sample"
"""The sample's source, reserved for its notes."""


def _listed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return list(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))


EARLIEST_MONTH = "1900-01"
"""Dagster can still load a partition for each month since then; an earlier date is an error."""


def checked_month(value: str) -> str:
    """Return a month if it can be the first partition.

    Raises:
        ValueError: It cannot; the message says which months can.
    """
    if not re.fullmatch(r"(?!0000)[0-9]{4}-(0[1-9]|1[0-2])", value):
        raise ValueError(_("must be a month in the form YYYY-MM, such as 2024-11"))
    if not EARLIEST_MONTH <= value <= f"{datetime.now(UTC):%Y-%m}":
        raise ValueError(
            _("must be a month between {earliest} and the present one").format(
                earliest=EARLIEST_MONTH
            )
        )
    return value


def _files_url(value: str) -> str:
    """Check that a URL names a folder or a bucket."""
    scheme, __, place = value.partition("://")
    is_place = place.startswith("/") if scheme == "file" else bool(place.strip("/"))
    if scheme not in FILES_SCHEMES or not is_place or "@" in place.partition("/")[0]:
        raise ValueError(
            _(
                "must be file:///folder, s3://bucket/prefix, gs://bucket/prefix or "
                "az://container/prefix, without credentials: these go in the environment"
            )
        )
    return value


OptionalPath = Annotated[Path | None, BeforeValidator(lambda value: value or None)]
OptionalUrl = Annotated[
    Annotated[str, AfterValidator(_files_url)] | None, BeforeValidator(lambda value: value or None)
]
OptionalPort = Annotated[
    Annotated[int, Field(ge=1, le=65535)] | None,
    BeforeValidator(lambda value: None if value == "" else value),
]
OptionalJudge = Annotated[
    Literal["embedded", "llm"] | None, BeforeValidator(lambda value: value or None)
]
OptionalText = Annotated[str | None, BeforeValidator(lambda value: value or None)]
OptionalSecret = Annotated[SecretStr | None, BeforeValidator(lambda value: value or None)]
Urls = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_listed)]
Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]


_PATHS = (
    "rag_home",
    "dagster_home",
    "rag_postgres_bin",
    "notes_source",
    "golden_source",
    "rag_configurations",
)
"""The settings that are paths; a relative one begins in the working folder."""


class Settings(BaseSettings):
    """All settings of the environment, or of a `.env` file in the working folder.

    Attributes:
        rag_home: The folder of all state.
        database_url: The user's own PostgreSQL; None starts the embedded one.
        database_direct_url: The same database without the pooler that `database_url` goes through;
            None: there is no pooler.
        database_read_url: Standbys of that server, from which questions are answered.
        dagster_home: The folder of Dagster's instance; None uses one in `rag_home`.
        dagster_pg_url: Dagster's own database; None uses one on the same server.
        rag_postgres_bin: A folder with PostgreSQL binaries for the embedded server.
        notes_source: Folder or file of notes. None: the notes table is filled by others; or the
            sample is read, if `sample_by_default` and the database holds nothing else.
        notes_source_name: Value of `notes.source`; part of a note's identity.
        documents_source: Folder of documents, a `.txt` or `.csv` file of URLs, or a URL. None:
            there are none.
        documents_pattern: Takes metadata from paths, as `{partido}_{año}.pdf` does; None takes
            none.
        download_allow_private: Whether to download from this machine and private networks.
        download_every_hours: How often the sensor checks sources on the web.
        extraction: Limits for reading documents; set `EXTRACTION__TIMEOUT_S` and so on.
        mirror: Whether the notes of NOTES_SOURCE follow its files: renames, copies and deletions.
        mirror_grace: How long the note of a file that is gone is kept, in days.
        golden_source: JSON file of golden questions; None if they are imported by hand.
        files_url: Where reports and copies of documents are written: `file:///folder`, `s3://bucket/prefix`,
            `gs://…`, `az://…`. None: under `rag_home`.
        first_month: First monthly partition, `YYYY-MM`.
        embedding_models: Models whose chunk embeddings are assets.
        note_embedding_model: Model of the whole-note vectors.
        legacy_embedding_model: The model that made `notes.embedding` of an adopted database. If it
            is `note_embedding_model`, those vectors are adopted.
        ollama_host: Ollama server, for models named `ollama_…` and the language model.
        openai_base_url: OpenAI-compatible server, such as `http://127.0.0.1:8080/v1`, for models
            named `openai_…` and the language model.
        openai_api_key: Key of that server.
        llm_model: Language model, such as `ollama:llama3.2` or `openai:<model>`; if empty,
            extractive stand-ins.
        graph_extractor: The extractor that reads notes for the causal graph, `rules` or `llm`.
        judge: The judge of evaluations' answers, `embedded` or `llm`; if empty, none.
        answer_language: The language in which readers are answered, unless they ask for another.
        timezone: Of the readers: when the days begin that a question names.
        rag_lang: The language of everything that operators read; `languages.messages` reads it
            itself.
        answer_context_tokens: Most tokens of passages that a language model answers from.
        answer_allowed_misses: Share of the answerable questions that may be left unanswered, so
            that fewer unanswerable ones get an answer.
        answer_log_text: Which texts the log of answers keeps: `none`, `question`, or `all`, which
            includes the answer's sentences.
        redis_url: Shared cache of answers and vectors; None caches in this process.
        celery_broker_url: Redis of a fleet's Celery, which the instance file names by this setting.
        chunking_strategy: How notes are cut, as in `ChunkingConfig`.
        chunking_max_tokens: Longest chunk of `sentences`.
        chunking_target: Wanted length of chunks of `structure`, in characters.
        rag_configurations: An additional folder of retrieval configurations.
        tenant: Whose notes are ingested and searched.
        gate: What a promotion requires; set its fields as `GATE__HIT_RATE_AT_10` and so on.
        expired_grace_hours: How long an expired note, already hidden, is kept.
        migration_floor: Lowest Hit_Rate@10 with which the next batch of a migration starts.
        ui_host: Address of the Dagster webserver, which has no login of its own.
        ui_port: Port of the webserver; None uses a free one.
        api_host: Address of the HTTP API.
        api_port: Its port; None uses 8000 or a free one.
        api_open: Whether it answers this machine without a key while there are none.
        api_cors_origins: Origins whose web pages may use the API with a key; none by default.
        api_workers: Its processes; each has the models in memory.
        api_threads: Questions that each of them works on at once.
        api_queue: Questions that may wait in each; further ones are refused.
        query_topk_default: Passages that `/api/v1/query` returns, unless a request says how many.
        query_topk_max: Most passages that it returns.
        query_mode: Its retrieval strategy.
        log_level: The least severe records that the API and runs write. Those of `debug` have
            filters, scores and questions.
    """

    model_config = SettingsConfigDict(
        env_file=ENV_FILE, env_nested_delimiter="__", extra="ignore", frozen=True
    )

    rag_home: Annotated[Path, BeforeValidator(lambda value: value or ".rag")] = Path(".rag")
    database_url: SecretStr | None = None
    database_direct_url: OptionalSecret = None
    database_read_url: Urls = ()
    dagster_home: OptionalPath = None
    dagster_pg_url: SecretStr | None = None
    rag_postgres_bin: OptionalPath = None
    notes_source: OptionalPath = None
    notes_source_name: str = Field("notes", min_length=1, max_length=100)
    documents_source: OptionalText = None
    documents_pattern: OptionalText = None
    download_allow_private: bool = False
    download_every_hours: float = Field(24.0, gt=0, le=8_760)
    extraction: ExtractionConfig = ExtractionConfig()
    mirror: bool = False
    mirror_grace: int = Field(7, ge=0, le=3_650)
    golden_source: OptionalPath = None
    files_url: OptionalUrl = None
    first_month: Annotated[str, AfterValidator(checked_month)] = "2024-11"
    embedding_models: Listed = Field(("e5_small", "use_multilingual"), min_length=1)
    note_embedding_model: str = "use_multilingual"
    legacy_embedding_model: str | None = None
    ollama_host: str | None = None
    openai_base_url: OptionalText = None
    openai_api_key: SecretStr | None = None
    llm_model: str | None = None
    graph_extractor: Literal["rules", "llm"] = "rules"
    judge: OptionalJudge = None
    answer_language: Literal["es", "fr", "en"] = "es"
    timezone: ZoneInfo = MADRID
    rag_lang: Literal["es", "en"] = "es"
    answer_context_tokens: int = Field(CONTEXT_TOKENS, ge=100, le=MAX_CONTEXT_TOKENS)
    answer_allowed_misses: float = Field(ALLOWED_MISSES, ge=0, le=MOST_ALLOWED_MISSES)
    answer_log_text: Literal["none", "question", "all"] = "question"
    redis_url: SecretStr | None = None
    celery_broker_url: OptionalSecret = None
    chunking_strategy: Literal["sentences", "structure"] = "sentences"
    chunking_max_tokens: int = Field(512, ge=16, le=8192)
    chunking_target: int = Field(1200, ge=16, le=4096)
    gate: GateConfig = GateConfig()
    rag_configurations: OptionalPath = None
    tenant: str = Field("default", min_length=1, max_length=MAX_TENANT_CHARS)
    expired_grace_hours: int = Field(24, ge=0, le=87_600)
    migration_floor: float = Field(0.0, ge=0, le=1)
    ui_host: str = "127.0.0.1"
    ui_port: OptionalPort = None
    api_host: str = "127.0.0.1"
    api_port: OptionalPort = 8000
    api_open: bool = True
    api_cors_origins: Listed = ()
    api_workers: int = Field(1, ge=1, le=64)
    api_threads: int = Field(4, ge=1, le=20)
    api_queue: int = Field(32, ge=0, le=10_000)
    query_topk_default: int = Field(5, ge=1, le=50)
    query_topk_max: int = Field(10, ge=1, le=50)
    query_mode: Literal["semantic", "hybrid"] = "hybrid"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _query_sizes(self) -> "Settings":
        if self.query_topk_default > self.query_topk_max:
            raise ValueError(_("QUERY_TOPK_DEFAULT must not be larger than QUERY_TOPK_MAX"))
        return self

    @model_validator(mode="after")
    def _database_behind_pooler(self) -> "Settings":
        if self.database_direct_url and not self.database_url:
            raise ValueError(_("DATABASE_DIRECT_URL also needs DATABASE_URL"))
        return self

    @field_validator("notes_source_name")
    @classmethod
    def _not_the_sample(cls, value: str) -> str:
        if value == SAMPLE_SOURCE:
            raise ValueError(
                _("“{name}” is the name of the sample; choose another one").format(
                    name=SAMPLE_SOURCE
                )
            )
        return value

    @field_validator("embedding_models")
    @classmethod
    def _known_models(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        # Assets and tables are named after models.
        for name in value:
            cls._known_model(name)
        return value

    @field_validator("note_embedding_model", "legacy_embedding_model")
    @classmethod
    def _known_model(cls, value: str | None) -> str | None:
        if value and not is_model_name(value):
            raise ValueError(unknown_model(value))
        return value

    @field_validator("llm_model")
    @classmethod
    def _language_model(cls, value: str | None) -> str | None:
        if value and language_model(value) is None:
            raise ValueError(
                _(
                    "Unknown language model: “{name}”. Write ollama:<model> or openai:<model>, or "
                    "nothing to use none."
                ).format(name=shown(value))
            )
        return value

    @field_validator("documents_pattern")
    @classmethod
    def _pattern(cls, value: str | None) -> str | None:
        if value:
            try:
                PathPattern(value)
            except InvalidParameterError as error:
                raise ValueError(error.message) from error
        return value

    @field_validator(*_PATHS)
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        try:
            return value.expanduser().absolute() if value else None
        except RuntimeError:  # The `~user` of an unknown user.
            raise ValueError(
                _("the home folder of {path} is not known").format(path=value)
            ) from None

    @field_validator("documents_source")
    @classmethod
    def _absolute_unless_url(cls, value: str | None) -> str | None:
        if value is None:
            return value
        if value.startswith(("http://", "https://")):
            if "@" in value.partition("://")[2].partition("/")[0]:
                raise ValueError(
                    _(
                        "must not have a user or a password: they would be stored as the origin "
                        "of the documents"
                    )
                )
            return value
        return str(cls._absolute(Path(value.removeprefix("file://"))))

    def lasting_environment(self) -> dict[str, str]:
        """Return an environment with the same settings in any working folder, without `.env`."""
        known = [name.upper() for name in type(self).model_fields]
        given = {name.upper() for name in os.environ}
        of_file = {
            name.upper(): value
            for name, value in present_values().items()
            if value is not None and name.upper() not in given
        }
        ours = {name: value for name, value in of_file.items() if name.partition("__")[0] in known}
        absolute = {
            name.upper(): str(getattr(self, name) or "")
            for name in (*_PATHS, "documents_source")
            if name in self.model_fields_set or name == "rag_home"
        }
        return {**os.environ, **ours, **absolute}

    @property
    def chunking(self) -> ChunkingConfig:
        """How notes are cut; the other sizes follow from the one that is set."""
        longest, target = self.chunking_max_tokens, self.chunking_target
        return ChunkingConfig(
            strategy=self.chunking_strategy,
            max_tokens=longest,
            overlap_tokens=min(50, longest // 8),
            min_tokens=min(100, longest // 5),
            target=target,
            min=target // 3,
            max=target * 5 // 3,
            overlap=target // 8,
        )

    @property
    def servers(self) -> Servers:
        """Where the models of servers are."""
        return Servers(self.ollama_host, self.openai_base_url, self.openai_api_key)

    @property
    def instance_folder(self) -> Path:
        """The folder of Dagster's instance and its `dagster.yaml`."""
        return self.dagster_home or self.rag_home / "dagster"

    @property
    def names_no_source(self) -> bool:
        """Whether no notes, documents or golden questions are set, not even to an empty value."""
        named = {"notes_source", "golden_source", "documents_source"}
        return not named & self.model_fields_set

    @property
    def sample_by_default(self) -> bool:
        """Whether the sample may be used; `ingestion.content_source` also checks the database."""
        return self.names_no_source and not self.database_url

    @property
    def files_address(self) -> str:
        """The URL under which reports and copies of documents are written."""
        return self.files_url or self.rag_home.as_uri()

    @property
    def keeps_files(self) -> bool:
        """Whether files written there are kept as reliably as the database.

        `rag_home` holds the embedded database. With another database, it may be a worker's local
        folder.
        """
        return self.files_url is not None or self.database_url is None

    @property
    def search(self) -> SearchSettings:
        """The settings that change what a question finds."""
        return SearchSettings(self.tenant, self.llm_model or "")

    @property
    def own_configurations(self) -> Path:
        """Where a command writes a configuration, also before a setting names the folder."""
        return self.rag_configurations or Path("configurations").absolute()

    @property
    def configuration_folders(self) -> tuple[Path, ...]:
        """Folders of named retrieval configurations; names must be unique across them."""
        own = (self.rag_configurations,) if self.rag_configurations else ()
        return (CONFIGURATIONS, *own)

    @property
    def adopts_legacy_vectors(self) -> bool:
        """Whether the vectors in an adopted database serve as whole-note vectors."""
        return self.legacy_embedding_model == self.note_embedding_model

    @property
    def all_models(self) -> tuple[str, ...]:
        """Every model in use, without repeats."""
        return tuple(dict.fromkeys((*self.embedding_models, self.note_embedding_model)))

    def makes_vectors_for(self, config: RetrievalConfig) -> bool:
        """Whether the models switched on make what a configuration needs, if it needs vectors."""
        made = self.embedding_models if config.unit == "chunks" else (self.note_embedding_model,)
        return not config.needs_vectors or config.model in made

    def warning_about(self, name: str, config: RetrievalConfig | None) -> Text | None:
        """Say that new notes do not get the vectors of a configuration's chunks; None if they do.

        Args:
            name: The configuration's.
            config: None if it is not known.
        """
        if config is None or config.unit == "notes" or self.makes_vectors_for(config):
            return None
        return _(
            "“{name}” searches with {model}, which is not in EMBEDDING_MODELS: new notes will not "
            "get its vectors, and “rag run” does not evaluate that configuration. Add it there."
        ).format(name=name, model=config.model)

    def check_home(self) -> None:
        """Check that the state folder could be one; creates nothing.

        Raises:
            InvalidParameterError: It is a file, or in one.
        """
        there = next(path for path in (self.rag_home, *self.rag_home.parents) if path.exists())
        if not there.is_dir():
            raise _unwritable(self.rag_home)

    def ensure_home(self) -> Path:
        """Create the state folder.

        Raises:
            InvalidParameterError: The folder cannot be written.
        """
        try:
            # Root's embedded server runs as another user, who must be able to enter.
            mode = 0o711 if os.geteuid() == 0 else 0o700
            self.rag_home.mkdir(parents=True, exist_ok=True, mode=mode)
            probe = self.rag_home / ".writable"
            probe.touch()
            probe.unlink(missing_ok=True)  # Another process may be doing the same.
        except OSError as error:
            raise _unwritable(self.rag_home) from error
        return self.rag_home


def _unwritable(home: Path) -> InvalidParameterError:
    return InvalidParameterError(
        _("{path} cannot be written: check the folder, the permissions and the free space.").format(
            path=f"RAG_HOME={home}"
        ),
        path=home,
    )


def load_settings(**overrides: Any) -> Settings:
    """Read the environment.

    Raises:
        InvalidConfigurationError: Some variables are invalid (all are named), or the `.env` file is
            not UTF-8.
    """
    problems: Sequence[str]
    try:
        return Settings(**overrides)
    except ValidationError as error:
        cause: Exception = error
        problems = [_as_variable(problem) for problem in describe_problems(error, Settings)]
    except UnicodeDecodeError as error:
        cause, problems = error, [unreadable(".env", error)]
    except SettingsError as error:  # A whole group of fields was set, but not as JSON.
        cause, problems = (
            error,
            [_("Set each field of a group in its own variable, such as GATE__MARGIN.")],
        )
    raise InvalidConfigurationError(
        _("Some settings are invalid, in the environment or in .env:"), problems
    ) from cause


def env_file_problems() -> list[Text]:
    """Name the malformed lines of the `.env` file, which change nothing."""
    # Not their text, which may be a password.
    return [
        _(
            "Line {line} of the file .env is not of the form NAME=value and changes nothing. "
            "Correct it, or put “#” before it if it is a comment."
        ).format(line=line)
        for line in malformed_lines()
    ]


def unknown_variables() -> list[str]:
    """Return the names in the `.env` file that are no settings; other programs may have them."""
    known = {name.upper() for name in Settings.model_fields}
    return [name for name in present_values() if name.upper().partition("__")[0] not in known]


def _as_variable(problem: str) -> str:
    """Replace the names of fields by their environment variables."""
    name, __, reason = problem.partition(": ")
    variable = name.upper().replace(".", "__")
    said = problem.values["items"][-1] if isinstance(problem, Text) else reason
    if isinstance(said, Text) and said.msgid == _("unknown key; there are: {known}").msgid:
        said = _("unknown key; there are: {known}").format(known=said.values["known"].upper())
    return f"{variable}: {said if isinstance(said, Text) else reason}"
