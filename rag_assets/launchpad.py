"""What the launchpad asks a person for."""

from typing import Any

import dagster as dg
from pydantic import Field

from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _, joined


class LaunchpadConfig(dg.Config):
    """The base of all configurations that a person writes.

    Dagster shows a configuration's docstring above its fields. Ours are for programmers, and the
    fields are described in the user's language, so the classes drop theirs.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Drop the docstring."""
        super().__init_subclass__(**kwargs)
        cls.__doc__ = None


class SourceConfig(LaunchpadConfig):
    """What a person may say of the source, as the launchpad asks for it."""

    sample: bool = Field(
        default=False,
        description=_(
            "Reads the sample, even if the database has other notes; its questions are added to "
            "those that are there."
        ),
    )
    mixes: bool = Field(
        default=False, description=_("Mixes notes of several sources without asking.")
    )


class BatchConfig(LaunchpadConfig):
    """What a person may say of a batch, as the launchpad asks for it."""

    override_quality_gate: str = Field(
        default="",
        description=_(
            "Reason to go on although the quality gate is closed; it is stored with the batch "
            "that closed it. Empty: no going on."
        ),
    )


class PromotionConfig(LaunchpadConfig):
    """What to promote, as the launchpad asks for it."""

    configuration: str = Field(
        default="",
        description=_("The one that should serve; without it the best of those that pass."),
    )


class PromoteTenantConfig(LaunchpadConfig):
    """Whom to give them, as the launchpad asks for it."""

    tenant: str = Field(description=_("Name of the tenant, that of TENANT."))


class RetireConfig(LaunchpadConfig):
    """What to retire, as the launchpad asks for it."""

    model: str = Field(description=_("Name of the model to retire."))
    confirm: str = Field(
        default="",
        description=_(
            "The same name, to confirm. Empty: it is only said what would be deleted, and the run "
            "fails."
        ),
    )


class CompareConfig(LaunchpadConfig):
    """Two evaluations, as the launchpad asks for them."""

    before: str = Field(
        description=_("A configuration, or the beginning of an evaluation's identifier.")
    )
    after: str = Field(description=_("The second, which is judged against the first."))


class ReasonConfig(LaunchpadConfig):
    """Why, as the launchpad asks for it."""

    reason: str = Field(default="", description=_("Why; it is stored."))

    def given_reason(self) -> str:
        """Return the reason that the person gave.

        Raises:
            InvalidParameterError: No reason was given.
        """
        reason = self.reason.strip()
        if not reason:
            raise InvalidParameterError(_("Nothing was changed: the reason is missing."))
        return reason


class ImmediateConfig(ReasonConfig):
    """The confirmation of an immediate rollback."""

    confirm: str = Field(
        default="", description=_("Write “delete” to confirm that all chunks are deleted.")
    )
    accept_missing: int = Field(
        default=0, description=_("How many notes without a whole-note vector may stop being found.")
    )

    def accepted(self) -> int:
        """Return how many notes may become unfindable.

        Raises:
            InvalidParameterError: It is negative. Dagster's own check would use pydantic's words.
        """
        if self.accept_missing < 0:
            problem = _("{value} is less than the minimum, {ge}").format(
                value=self.accept_missing, ge=0
            )
            raise InvalidParameterError(joined(": ", ("accept_missing", problem)))
        return self.accept_missing


class PartialConfig(ReasonConfig):
    """The confirmation of a partial rollback."""

    confirm: str = Field(
        default="", description=_("Write “stop” to confirm that the migration is stopped.")
    )


class PromotionRollbackConfig(ReasonConfig):
    """What to withdraw, which confirms it."""

    withdraw: str = Field(
        default="",
        description=_(
            "The one to withdraw; without it the one that serves now. If it no longer serves, "
            "nothing changes."
        ),
    )


class RetrieveConfig(LaunchpadConfig):
    """A question, as the launchpad asks for it."""

    question: str = Field(description=_("The question."))
    configuration: str = Field(
        default="",
        description=_("Named configuration; by default the promoted one."),
    )
    strategy: str = Field(
        default="",
        description=_(
            "semantic, fulltext, hybrid or hybrid+rerank, instead of that of the configuration."
        ),
    )
    top_k: int = Field(
        default=0, description=_("How many passages; 0: those of the configuration.")
    )
    overrides: dict[str, Any] = Field(
        default={},
        description=_("Fields of the configuration to change, such as {fusion: {method: rrf}}."),
    )
    filters: dict[str, Any] = Field(
        default={},
        description=_(
            "Conditions on notes: source, date_source, tags, note_ids, created_from, "
            "created_until, metadata."
        ),
    )
    language: str = Field(
        default="",
        description=_(
            "Language of the question and the answer: es, fr or en. By default that of "
            "ANSWER_LANGUAGE."
        ),
    )


class AskConfig(RetrieveConfig):
    """A question to answer, and how it is read."""

    conversation: list[str] = Field(
        default=[],
        description=_(
            "The questions before in the conversation, as they were searched, oldest first."
        ),
    )
    ignored: list[str] = Field(
        default=[],
        description=_(
            "Disregard a condition that the question names, such as “in 2025”; repeatable."
        ),
    )
