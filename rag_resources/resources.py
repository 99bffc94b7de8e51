"""The Dagster resource of assets, checks and ops; nothing else in this package imports Dagster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from dagster import ConfigurableResource, InitResourceContext, ResourceDependency
from pydantic import PrivateAttr

from rag_resources.application import Application, open_application
from rag_resources.application.answer_log import AnswerLog
from rag_resources.application.documents import Documents
from rag_resources.application.evaluations import Evaluations
from rag_resources.application.graph import Graph
from rag_resources.application.indexing import Indexing
from rag_resources.application.migration import Migration
from rag_resources.application.notes import Notes
from rag_resources.application.serving import ServingConfiguration
from rag_resources.application.tenants import Tenants
from rag_resources.database.run_lock import run_guard
from rag_resources.golden.dataset import Golden
from rag_resources.languages.messages import _
from rag_resources.logs import log_to_stderr
from rag_resources.settings import Settings

TENANT_TAG = ".dagster/rag_tenant"
"""The hidden tag that names the tenant of a run; the run's log may quote that tenant's notes."""


class RagResource(ConfigurableResource["RagResource"]):
    """The retrieval pipeline with its database and models, as the settings configure them.

    One pool of connections per run (one per step with the multiprocess executor).
    """

    settings: ResourceDependency[Settings]
    _application: Application | None = PrivateAttr(default=None)

    @contextmanager
    def yield_for_execution(self, context: InitResourceContext) -> Iterator[Self]:
        """Open the application for a run and close it at its end."""
        log_to_stderr(level=self.settings.log_level)
        run_id = context.run.run_id if context.run else None
        if context.run and context.instance and TENANT_TAG not in context.run.tags:
            context.instance.add_run_tags(context.run.run_id, {TENANT_TAG: self.settings.tenant})
        with open_application(self.settings, guard=run_guard(run_id)) as application:
            self._application = application
            yield self
            self._application = None

    @property
    def application(self) -> Application:
        """The open application."""
        if self._application is None:
            raise RuntimeError("RagResource is only open inside a run")
        return self._application

    @property
    def notes(self) -> Notes:
        """The notes: sources, ingestion, deletion."""
        return self.application.notes

    @property
    def documents(self) -> Documents:
        """The documents: sources, reading, review."""
        return self.application.documents

    @property
    def answer_log(self) -> AnswerLog:
        """The answers that were given."""
        return self.application.answer_log

    @property
    def golden(self) -> Golden:
        """The golden dataset."""
        return self.application.golden

    @property
    def evaluations(self) -> Evaluations:
        """Evaluations of configurations, and their stored results."""
        return self.application.evaluations

    @property
    def serving(self) -> ServingConfiguration:
        """Which configuration serves."""
        return self.application.serving

    @property
    def migration(self) -> Migration:
        """The progress of the migration, and what blocks it."""
        return self.application.migration

    @property
    def indexing(self) -> Indexing:
        """Chunks and vectors of the notes."""
        return self.application.indexing

    @property
    def tenants(self) -> Tenants:
        """The tenants of the database."""
        return self.application.tenants

    @property
    def graph(self) -> Graph:
        """The causal graph of the notes."""
        return self.application.graph


RagResource.__doc__ = str(
    _("Retrieval with its database and its models, as the environment configures them.")
)
"""Dagster shows a resource's docstring to the users of its UI."""
