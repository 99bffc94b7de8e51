"""What a question asks for: its intent and the questions inside it, by rules, without a model."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Intent(StrEnum):
    """What kind of answer a question wants."""

    FACTUAL = "factual"
    CAUSAL = "causal"
    TEMPORAL = "temporal"
    COMPARATIVE = "comparative"
    ABSTRACT = "abstract"


@dataclass(frozen=True, slots=True)
class TransformedQuery:
    """A question and what is searched beside it. Properties 15 and 16.

    Attributes:
        original: The question, unchanged.
        sub_queries: The questions inside it, at least two, or none.
        hypothetical_answer: A made-up answer to search with (HyDE); None without a language model.
        transformed_at: Aware.
    """

    original: str
    intent: Intent
    sub_queries: tuple[str, ...]
    hypothetical_answer: str | None
    transformed_at: datetime
