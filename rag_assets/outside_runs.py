"""The sensor that shows what was evaluated and promoted without a run, as by the command line.

What is shown of an evaluation and of what serves is in `rag_assets.evaluation` and
`rag_assets.serving`.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import dagster as dg

from rag_assets.configured import Configured
from rag_assets.evaluation.checks import gates_of
from rag_assets.evaluation.metadata import stored_metadata
from rag_assets.keys import PROMOTED_CONFIG, evaluation_key
from rag_assets.labels import labelled
from rag_assets.serving.metadata import promotion_metadata
from rag_resources.application import Application, open_application
from rag_resources.core.configuration import NamedConfiguration
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.languages.messages import _
from rag_resources.store.promotions import Promotion

PER_TICK = 20
"""Most evaluations, and most promotions, that a tick reports; it has a minute."""

_BEFORE_ALL = "1970-01-01T00:00:00Z"
_NOTHING = {"evaluation": [_BEFORE_ALL, UUID(int=0).hex], "promotion": [_BEFORE_ALL, 0]}
"""The cursor before the first tick: time and id of the last evaluation and promotion shown."""


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
        shown: dict[str, list[Any]] = json.loads(context.cursor or json.dumps(_NOTHING))
        (evaluated, evaluation_id), (promoted, promotion_id) = shown.values()
        known = configured.configurations
        with open_application(configured.settings) as application:
            evaluations = application.evaluations.outside_runs(
                (datetime.fromisoformat(evaluated), UUID(evaluation_id)), limit=PER_TICK
            )
            promotions = application.serving.outside_runs(
                (datetime.fromisoformat(promoted), promotion_id), limit=PER_TICK
            )
            if not evaluations and not promotions:
                return dg.SkipReason(_("There is nothing to do."))
            events: list[dg.AssetObservation | dg.AssetCheckEvaluation] = []
            for evaluation in evaluations:
                shown["evaluation"] = [
                    evaluation.created_at.isoformat(),
                    str(evaluation.evaluation_id),
                ]
                # One whose model is switched off, or whose file is gone, has no asset.
                if evaluation.configuration in known:
                    events += shown_evaluation(
                        application, evaluation, known[evaluation.configuration]
                    )
            for number, promotion in promotions:
                shown["promotion"] = [promotion.promoted_at.isoformat(), number]
                events.append(_shown_promotion(application, promotion))
        told = _(
            "Made without Dagster and shown now: evaluations, {evaluations}; promotions, "
            "{promotions}."
        ).format(evaluations=len(evaluations), promotions=len(promotions))
        return dg.SensorResult(
            asset_events=events, skip_reason=dg.SkipReason(told), cursor=json.dumps(shown)
        )

    return outside_runs


def shown_evaluation(
    application: Application, evaluation: StoredEvaluation, configuration: NamedConfiguration
) -> Iterator[dg.AssetObservation | dg.AssetCheckEvaluation]:
    """Yield the observation of an evaluation and, if it is the latest, what its gates say.

    It is for evaluations that the run of their asset did not make. Not a materialisation: that
    would start what depends on it.
    """
    moment = dg.MetadataValue.timestamp(evaluation.created_at)
    metadata = labelled({**stored_metadata(evaluation), "evaluated_at": moment})
    yield dg.AssetObservation(evaluation_key(configuration.name), metadata=metadata)
    latest = application.evaluations.latest(configuration.name)
    if latest and latest.evaluation_id == evaluation.evaluation_id:
        gates = application.evaluations.gates(evaluation)
        yield from (gate.judge(configuration, gates) for gate in gates_of(configuration))


def _shown_promotion(application: Application, promotion: Promotion) -> dg.AssetObservation:
    """Return the observation of a promotion or rollback, with the figures that it was made on.

    Whether these are current is not told: they were then, and may not be when this is shown.
    """
    known = promotion.evaluation_id
    evaluation = application.evaluations.find(known) if known else None
    return dg.AssetObservation(PROMOTED_CONFIG, metadata=promotion_metadata(promotion, evaluation))
