"""The sensor that shows what was evaluated and promoted without Dagster, as by the command line.

What is shown of an evaluation and of what serves is in `rag_assets.evaluation` and
`rag_assets.serving`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self
from uuid import UUID

import dagster as dg

from rag_assets.configured import Configured
from rag_assets.evaluation.checks import told_without_checks
from rag_assets.evaluation.metadata import stored_metadata, unplotted
from rag_assets.keys import PROMOTED_CONFIG, evaluation_key
from rag_assets.labels import labelled
from rag_assets.serving.metadata import promotion_metadata
from rag_resources.application import Application, open_application
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.languages.messages import _
from rag_resources.store.promotions import Promotion

PER_TICK = 20
"""Most evaluations, and most promotions, that a tick reports; it has a minute."""

_BEFORE_ALL = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Reported:
    """Up to where evaluations and promotions are reported: time and id of the last of each."""

    evaluation: tuple[datetime, UUID] = (_BEFORE_ALL, UUID(int=0))
    promotion: tuple[datetime, int] = (_BEFORE_ALL, 0)

    @classmethod
    def of_cursor(cls, cursor: str | None) -> Self:
        """Read a sensor's cursor; without one, nothing is reported yet."""
        if cursor is None:
            return cls()
        read = json.loads(cursor)
        (evaluated, evaluation_id), (promoted, promotion_id) = read["evaluation"], read["promotion"]
        return cls(
            (datetime.fromisoformat(evaluated), UUID(evaluation_id)),
            (datetime.fromisoformat(promoted), int(promotion_id)),
        )

    def as_cursor(self) -> str:
        """Write it as a sensor's cursor."""
        (evaluated, evaluation_id), (promoted, promotion_id) = self.evaluation, self.promotion
        return json.dumps(
            {
                "evaluation": [evaluated.isoformat(), str(evaluation_id)],
                "promotion": [promoted.isoformat(), promotion_id],
            }
        )


def build_outside_runs_sensor(configured: Configured) -> dg.SensorDefinition:
    """Build the sensor that reports the evaluations and promotions that no run made."""

    @dg.sensor(
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=_(
            "Shows in their assets, as observations, the evaluations and promotions made without "
            "Dagster, as those of the command line; it launches nothing."
        ),
    )
    def outside_runs(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        """Report what is newer than the cursor, oldest first, as observations and checks.

        An observation has the metadata of a materialisation, but starts no automation. The cursor
        advances only if the tick succeeds, so the next tick reports what a failed one did not.
        """
        reported = Reported.of_cursor(context.cursor)
        with open_application(configured.settings) as application:
            evaluations = application.evaluations.outside_runs(reported.evaluation, limit=PER_TICK)
            promotions = application.serving.outside_runs(reported.promotion, limit=PER_TICK)
            if not evaluations and not promotions:
                return dg.SkipReason(_("There is nothing to do."))
            # One whose model is switched off, or whose file is gone, has no asset.
            shown = [
                each for each in evaluations if each.configuration in configured.configurations
            ]
            events = [
                *(
                    event
                    for each in shown
                    for event in _evaluated(configured, application, each, context.instance)
                ),
                *(_promoted(application, promotion) for __, promotion in promotions),
            ]
        for evaluation in evaluations[-1:]:
            reported = replace(
                reported, evaluation=(evaluation.created_at, evaluation.evaluation_id)
            )
        for promotion_id, promotion in promotions[-1:]:
            reported = replace(reported, promotion=(promotion.promoted_at, promotion_id))
        told = _(
            "Made without Dagster and shown now: evaluations, {evaluations}; promotions, "
            "{promotions}."
        ).format(evaluations=len(shown), promotions=len(promotions))
        return dg.SensorResult(
            asset_events=events, skip_reason=dg.SkipReason(told), cursor=reported.as_cursor()
        )

    return outside_runs


def _evaluated(
    configured: Configured,
    application: Application,
    evaluation: StoredEvaluation,
    instance: dg.DagsterInstance,
) -> Iterator[dg.AssetObservation | dg.AssetCheckEvaluation]:
    """Yield the observation of an evaluation and, if it is the latest, what its gates say.

    Checks speak of the latest evaluation only. Dagster plots an observation at the time at which it
    is told, so one that is older than the last evaluation by a run is told without numbers.
    """
    configuration = configured.configurations[evaluation.configuration]
    key = evaluation_key(configuration.name)
    by_run = instance.get_latest_materialization_event(key)
    is_old = by_run is not None and evaluation.created_at.timestamp() < by_run.timestamp
    told = stored_metadata(evaluation)
    metadata = {
        **(unplotted(told) if is_old else told),
        "evaluated_at": dg.MetadataValue.timestamp(evaluation.created_at),
    }
    yield dg.AssetObservation(
        key, description=_left_out(evaluation, is_old), metadata=labelled(metadata)
    )
    latest = application.evaluations.latest(configuration.name)
    if latest and latest.evaluation_id == evaluation.evaluation_id:
        gates = application.evaluations.gates(evaluation)
        yield from told_without_checks(configuration, configured.settings.gate, gates)


def _promoted(application: Application, promotion: Promotion) -> dg.AssetObservation:
    """Return the observation of a promotion or rollback, with the figures that it was made on.

    Whether these are current is not told: they were then, and may not be when this is shown.
    """
    known = promotion.evaluation_id
    template = (
        _(
            "Rollback of {promoted_at:%Y-%m-%d %H:%M} UTC, made without Dagster; the figures are "
            "those of the promotion that it goes back to."
        )
        if promotion.reason
        else _(
            "Promotion of {promoted_at:%Y-%m-%d %H:%M} UTC, made without Dagster, with the "
            "figures that it was based on."
        )
    )
    return dg.AssetObservation(
        PROMOTED_CONFIG,
        description=template.format(promoted_at=promotion.promoted_at),
        metadata=promotion_metadata(
            promotion, application.evaluations.find(known) if known else None
        ),
    )


def _left_out(evaluation: StoredEvaluation, is_old: bool) -> str:
    """Say when an evaluation was made and, if so, why its numbers are not plotted."""
    if evaluation.is_disturbed:
        reason = _(
            "Evaluation of {evaluated_at:%Y-%m-%d %H:%M} UTC, made without Dagster and disturbed: "
            "it decides nothing, and its figures are not plotted."
        )
    else:
        reason = (
            _(
                "Evaluation of {evaluated_at:%Y-%m-%d %H:%M} UTC, made without Dagster and older "
                "than the last one by a run: its figures are not plotted."
            )
            if is_old
            else _("Evaluation of {evaluated_at:%Y-%m-%d %H:%M} UTC, made without Dagster.")
        )
    return reason.format(evaluated_at=evaluation.created_at)
