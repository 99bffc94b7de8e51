"""A logistic model over named features: its weights, and the probability that it gives.

The confidence of a response (`core.confidence`) is such a model. Fitting one belongs in
`core.calibration`.
"""

import math
from collections.abc import Mapping
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Name = TypeVar("Name", bound=str)

# Adding 0 turns -0.0 into 0.0, as `abs` does for weights.
Coefficient = Annotated[
    float, Field(ge=-1e6, le=1e6, allow_inf_nan=False), AfterValidator(lambda value: value + 0.0)
]


class FeatureWeight(BaseModel):
    """The weight of a standardised feature: `weight * (value - mean) / scale`.

    Attributes:
        mean: Mean over the candidates that the model was trained on.
        scale: Their standard deviation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: Coefficient
    mean: Coefficient
    scale: float = Field(ge=1e-6, le=1e6, allow_inf_nan=False)


def probability(
    intercept: float, weights: Mapping[Name, FeatureWeight], features: Mapping[Name, float]
) -> float:
    """Return the logistic function of the weighted sum, in [0, 1].

    A feature that is missing counts as its mean.
    """
    logit = math.fsum(
        (
            intercept,
            *(
                item.weight * (features[name] - item.mean) / item.scale
                for name, item in weights.items()
                if name in features
            ),
        )
    )
    odds = math.exp(-abs(logit))  # Never above 1, so it does not overflow.
    return (1.0 if logit >= 0 else odds) / (1 + odds)
