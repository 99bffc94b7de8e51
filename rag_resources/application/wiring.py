"""Builds an application from settings, and retrieves with it."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import structlog

from rag_resources.application.chosen import Chosen, Switch
from rag_resources.application.confidence import Confidences
from rag_resources.configurations import (
    DEFAULT_CONFIGURATION,
    ConfigurationFiles,
    Configurations,
)
from rag_resources.core.answer_log import LoggedAnswer
from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    with_overrides,
)
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import RagError
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.types import RetrievalResponse, Vectors
from rag_resources.database.background import BackgroundWriter
from rag_resources.database.locate import open_database, open_reads
from rag_resources.database.pool import Access, Database
from rag_resources.database.readers import Readers, Reads
from rag_resources.languages.messages import Text, _
from rag_resources.providers.cache import EMBEDDINGS, Cache, MemoryCache
from rag_resources.providers.cached_embedder import CachedEmbedder
from rag_resources.providers.protocols import Embedder, LanguageModel
from rag_resources.providers.registry import build_embedder, build_language_model
from rag_resources.retrieval.cache import Caches, build_caches
from rag_resources.retrieval.pipeline import DEADLINE_MS, RetrievalPipeline
from rag_resources.retrieval.request import check_query, check_top_k, check_words
from rag_resources.retrieval.unmet_filters import unmet_filters
from rag_resources.settings import Settings
from rag_resources.store.answers import answer_writer
from rag_resources.store.api_keys import Keys
from rag_resources.store.evaluation_requests import EvaluationRequests
from rag_resources.store.vectors import keep_vectors

if TYPE_CHECKING:  # Domains are imported on first use, because some load slowly.
    from rag_resources.application.answer_log import AnswerLog
    from rag_resources.application.answers import Answers
    from rag_resources.application.documents import Documents
    from rag_resources.application.evaluations import Evaluations
    from rag_resources.application.graph import Graph
    from rag_resources.application.indexing import Indexing
    from rag_resources.application.migration import Migration
    from rag_resources.application.notes import Notes
    from rag_resources.application.serving import ServingConfiguration
    from rag_resources.application.tenants import Tenants
    from rag_resources.evaluation.judging import Judging
    from rag_resources.golden.dataset import Golden

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Answered:
    """A response, and the configuration that produced it.

    Attributes:
        configuration: The configuration's name, as shown to people.
        config: The configuration with the requested changes; None if it is not known.
        name: The plain name; empty if the stored configuration is not valid.
        is_promoted: Whether it is the promoted one, as it was promoted.
    """

    configuration: str
    response: RetrievalResponse
    config: RetrievalConfig | None = None
    name: str = ""
    is_promoted: bool = False

    def origin_to_json(self) -> dict[str, Any]:
        """Return which configuration it was, by the name that a caller may send; None if none."""
        return {"configuration": self.name or None, "promoted": self.is_promoted}


@dataclass(frozen=True)
class Application:
    """An open database with everything that works on it.

    Attributes:
        settings: Only for the domains; other callers use the domains.
        database: Open; also only for the domains.
        readers: Its standbys, if there are any; questions are answered from them.
        switch: If `warm_up` is called again and again: what answers until it has loaded.
    """

    settings: Settings
    database: Database
    readers: Readers | None = None
    switch: Switch | None = None

    @property
    def notes(self) -> "Notes":
        """The notes: sources, ingestion, deletion."""
        from rag_resources.application.notes import Notes

        return Notes(self.database, self.settings)

    @property
    def documents(self) -> "Documents":
        """The documents: sources, reading, review, deletion."""
        from rag_resources.application.documents import Documents

        return Documents(self.database, self.settings)

    @property
    def answers(self) -> "Answers":
        """Answers with citations."""
        from rag_resources.application.answers import Answers

        return Answers(
            self.database.as_(Access.WRITER),
            self.settings,
            self.retrieve,
            self.language_model,
            embedder=self.embedder,
            judge=self.confidences.judge_answer,
            log=self.answer_log.record,
        )

    @property
    def answer_log(self) -> "AnswerLog":
        """The log of given answers, with the feedback of their readers."""
        from rag_resources.application.answer_log import AnswerLog

        return AnswerLog(self.database, self.settings, self.answer_writer)

    @property
    def golden(self) -> "Golden":
        """The golden dataset."""
        from rag_resources.golden.dataset import Golden

        return Golden(self.database.as_(Access.WRITER), self.settings)

    @property
    def evaluations(self) -> "Evaluations":
        """Evaluations: measure, compare, experiment and report."""
        from rag_resources.application.evaluations import Evaluations

        return Evaluations(
            self.database,
            self.settings,
            pipeline=lambda: self.pipeline,
            measuring_pipeline=lambda: self.measuring_pipeline,
            judging=self.judging,
        )

    @property
    def evaluation_requests(self) -> EvaluationRequests:
        """The evaluations that were requested over HTTP."""
        return EvaluationRequests(self.database, self.settings.tenant)

    @property
    def keys(self) -> Keys:
        """The keys of the HTTP API."""
        return Keys(self.database)

    @property
    def tenants(self) -> "Tenants":
        """The tenants of the database."""
        from rag_resources.application.tenants import Tenants

        return Tenants(self.database, self.settings)

    @property
    def serving(self) -> "ServingConfiguration":
        """Which configuration serves."""
        from rag_resources.application.serving import ServingConfiguration

        return ServingConfiguration(
            self.database,
            self.settings,
            evaluate=lambda configuration, run_id: self.evaluations.run(
                configuration, run_id=run_id
            ),
        )

    @property
    def migration(self) -> "Migration":
        """The progress of the migration, what blocks it, and rollbacks."""
        from rag_resources.application.migration import Migration

        return Migration(self.database, self.settings, pipeline=lambda: self.pipeline)

    @property
    def indexing(self) -> "Indexing":
        """Chunks and vectors of the notes."""
        from rag_resources.application.indexing import Indexing

        return Indexing(self.database, self.settings, self.embedder)

    @property
    def graph(self) -> "Graph":
        """The causal graph of the notes."""
        from rag_resources.application.graph import Graph

        return Graph(self.database, self.settings, self.language_model)

    def embedder(self, model: str) -> Embedder:
        """Return the embedder of a model, one per process."""
        return build_embedder(model, self.settings.servers)

    @property
    def language_model(self) -> LanguageModel | None:
        """The language model, one per process; None if none is configured."""
        return build_language_model(self.settings.llm_model, self.settings.servers)

    def judging(self, judge: str | None = None) -> "Judging | None":
        """Build the answerer and judge of an evaluation; None for retrieval only.

        Args:
            judge: `embedded`, `llm` or empty for none; None uses the settings' judge.

        Raises:
            InvalidParameterError: No judge has this name, or it needs a missing language model.
            ModelMissingError: The embedded judge's model is not installed.
        """
        from rag_resources.answers.language_model import AnswerOptions
        from rag_resources.evaluation.judging import build_judging

        return build_judging(
            self.settings.judge if judge is None else judge,
            embedder=self.embedder,
            language_model=self.language_model,
            language=self.settings.answer_language,
            options=AnswerOptions(self.settings.answer_context_tokens),
        )

    @cached_property
    def caches(self) -> Caches:
        """The caches of this process's retrievals, in Redis if configured."""
        url = self.settings.redis_url
        return build_caches(url.get_secret_value() if url else None)

    @cached_property
    def answer_writer(self) -> BackgroundWriter[LoggedAnswer]:
        """The background writer of this process's answers."""
        return answer_writer(self.database)

    @cached_property
    def confidences(self) -> Confidences:
        """The confidence of responses: calibration and judgement."""
        return Confidences(self.database, self.settings, pipeline=lambda: self.pipeline)

    @cached_property
    def pipeline(self) -> RetrievalPipeline:
        """The retrieval pipeline over the settings' tenant."""
        database = self.readers or self.database.as_(Access.READER)
        return self._build_pipeline(database, self.embedder, self.caches)

    @cached_property
    def measuring_pipeline(self) -> RetrievalPipeline:
        """A pipeline that embeds each question once, for any number of configurations."""
        vectors: Cache[Vectors] = MemoryCache(EMBEDDINGS)
        # On the primary, because an evaluation records which state of the notes it measured.
        return self._build_pipeline(
            self.database.as_(Access.READER),
            lambda model: CachedEmbedder(self.embedder(model), vectors),
            None,
        )

    def _build_pipeline(
        self, database: Reads, embedder: Callable[[str], Embedder], caches: Caches | None
    ) -> RetrievalPipeline:
        return RetrievalPipeline(
            database,
            embedder=embedder,
            tenant=self.settings.tenant,
            language_model=self.language_model,
            caches=caches,
            keep_vectors=partial(keep_vectors, self.database),
        )

    @cached_property
    def configuration_files(self) -> ConfigurationFiles:
        """The files of the named configurations."""
        return ConfigurationFiles(self.settings.configuration_folders)

    @property
    def configurations(self) -> Configurations:
        """Every named configuration, by name, as the files are now."""
        return self.configuration_files.read()

    def configuration(self, name: str) -> NamedConfiguration:
        """Return a named configuration.

        Raises:
            InvalidConfigurationError: See `Configurations.named`.
        """
        return self.configurations.named(name)

    def warm_up(self) -> None:
        """Load the models of what serves now; see `RetrievalPipeline.warm_up`."""
        default = self.configuration(DEFAULT_CONFIGURATION)
        deadline = Deadline.after(DEADLINE_MS, time.monotonic)
        self.pipeline.warm_up(self.serving.read(default, deadline=deadline).config)

    def retrieve(
        self,
        question: str,
        *,
        configuration: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        top_k: int | None = None,
        filters: RetrievalFilters | None = None,
        language: str | None = None,
        deadline_ms: float = DEADLINE_MS,
    ) -> Answered:
        """Answer a question with a named configuration, or with the one that serves.

        Args:
            question: See `RetrievalPipeline.retrieve`.
            configuration: Its name; None uses what serves.
            overrides: Fields of the configuration to change, at any depth.
            top_k: Number of passages; None uses the configuration's.
            filters: Conditions the notes must meet.
            language: The question's language; None uses the settings'.
            deadline_ms: See `RetrievalPipeline.retrieve`.

        Raises:
            InvalidInputError: An argument is invalid; the message names it.
        """
        check_query(question)
        language = self.settings.answer_language if language is None else language
        check_words(question, language)
        if top_k is not None:
            check_top_k(top_k)
        chosen = self._what_answers() if configuration is None else self._named(configuration)
        config = with_overrides(chosen.config, overrides or {})
        self.pipeline.warm_up(config)
        response = self.pipeline.retrieve(
            question,
            config,
            top_k=top_k,
            filters=filters,
            language=language,
            deadline_ms=deadline_ms,
        )
        _log_retrieval(config, response, filters)
        confidence = self.confidences.judge(
            question,
            config,
            response,
            is_filtered=filters is not None and not filters.is_empty,
            top_k=top_k,
            deadline=Deadline.after(max(0.0, deadline_ms - response.latency_ms), time.monotonic),
        )
        unmet = self._unmet(filters, response, deadline_ms)
        messages = (*chosen.messages, *response.messages, *unmet)
        told = replace(response, messages=messages, confidence=confidence)
        if config != chosen.config:
            chosen = replace(chosen, label=chosen.name or chosen.label, is_promoted=False)
        return Answered(chosen.label, told, config, chosen.name, chosen.is_promoted)

    def _unmet(
        self, filters: RetrievalFilters | None, response: RetrievalResponse, deadline_ms: float
    ) -> tuple[Text, ...]:
        """Say which filters no note meets, if nothing was found, as far as there is time for it."""
        if filters is None or filters.is_empty or response.results or response.error:
            return ()
        deadline = Deadline.after(max(0.0, deadline_ms - response.latency_ms), time.monotonic)
        try:
            return unmet_filters(
                self.database.as_(Access.READER), self.settings.tenant, filters, deadline
            )
        except RagError as error:
            _log.warning("filters_not_examined", error=type(error).__name__)
            return ()

    def close(self) -> None:
        """Write the rest of the answers' log, for at most two seconds."""
        if "answer_writer" in vars(self):
            self.answer_writer.close()

    def serving_name(self) -> str:
        """Return the name of the configuration that serves, promoted or not."""
        return self.serving.read(self.configuration(DEFAULT_CONFIGURATION)).name

    def _named(self, configuration: str) -> Chosen:
        config = self.configuration(configuration).retrieval
        return Chosen(configuration, config, name=configuration)

    def _what_answers(self) -> Chosen:
        """Return the serving configuration; in a server, once its models are loaded."""
        serving = self._what_serves()
        return self.switch.follow(serving, self.pipeline.is_warm) if self.switch else serving

    def _what_serves(self) -> Chosen:
        """Return the serving configuration; if invalid as stored, default values and a message."""
        default = self.configuration(DEFAULT_CONFIGURATION)
        deadline = Deadline.after(DEADLINE_MS, time.monotonic)
        serving = self.serving.read(default, deadline=deadline)
        if serving.promotion is None:
            return Chosen(serving.name, serving.config, name=serving.name)
        if serving.problems:
            _log.warning("stored_configuration_invalid", problems=serving.problems)
            return Chosen(
                _("default values"),
                serving.config,
                (_("Invalid configuration, using default values"),),
            )
        label = _("{name} (promoted)").format(name=serving.name)
        return Chosen(label, serving.config, name=serving.name, is_promoted=True)


def _log_retrieval(
    config: RetrievalConfig, response: RetrievalResponse, filters: RetrievalFilters | None
) -> None:
    """Log an answered question; its text, filters and scores are only in DEBUG records."""
    _log.info(
        "retrieval",
        config_hash=config.config_hash,
        latency_ms=round(response.latency_ms, 1),
        stages={name: round(stage_ms, 1) for name, stage_ms in response.stages.items()},
        results=len(response.results),
        degraded=response.degraded,
        cached=response.cached,
        failed=response.error is not None,
    )
    _log.debug(
        "retrieval_results",
        query=response.query,
        filters=filters.model_dump(mode="json", exclude_defaults=True) if filters else {},
        scores={str(each.chunk_id): round(each.score, 4) for each in response.results},
    )


@contextmanager
def open_application(
    settings: Settings,
    *,
    min_connections: int = 1,
    guard: Callable[[], None] = lambda: None,
    switch: Switch | None = None,
    login: str | None = None,
) -> Iterator[Application]:
    """Open the database of the settings, and close it at the end.

    Args:
        settings: The environment.
        min_connections: As for `Database`.
        guard: As for `Database`.
        switch: As for `Application`.
        login: As for `open_database`.

    Raises:
        SchemaMismatchError: The schema has another version than this product needs.
        DatabaseError: The database cannot be started or reached.
    """
    database = open_database(settings, min_connections=min_connections, guard=guard, login=login)
    with ExitStack() as stack:
        stack.callback(database.close)
        readers = open_reads(settings, database)
        if readers:
            stack.callback(readers.close)
        application = Application(settings, database, readers, switch)
        stack.callback(application.close)
        yield application
