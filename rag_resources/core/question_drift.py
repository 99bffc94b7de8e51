"""How far the questions that people ask have moved from the golden questions.

An evaluation says how good the answers to the golden questions are. It says less about questions on
other subjects, or in other words. Whether the golden questions themselves are still right is in
`core.golden_drift`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from rag_resources.core.answer_log import AskedQuestion
from rag_resources.core.golden_drift import MixShift, category_shift
from rag_resources.core.text import normalize_query

FAR = 0.5
"""A question is far from the golden ones if none has at least this share of its stems."""


@dataclass(frozen=True, slots=True)
class QuestionDrift:
    """The drift of a period.

    Attributes:
        questions: Different questions whose text is kept.
        far: Those of them that are far from every golden question, the farthest first.
        nearness: The mean share of a question's stems that its nearest golden question has, in
            [0, 1]; None without texts or golden questions.
        intents: The mix of intents, golden questions before and asked ones now; None without
            either.
    """

    questions: int
    far: tuple[str, ...] = ()
    nearness: float | None = None
    intents: MixShift | None = None

    @property
    def far_share(self) -> float | None:
        """The share of questions that are far; None without texts or golden questions."""
        return None if self.nearness is None else len(self.far) / self.questions


def question_drift(
    asked: Sequence[AskedQuestion],
    *,
    golden_lexemes: Sequence[Set[str]],
    golden_intents: Mapping[str, int],
) -> QuestionDrift:
    """Compare the questions of a period with the golden ones.

    Args:
        asked: Logged questions.
        golden_lexemes: The stems of each golden question.
        golden_intents: Golden questions by intent.
    """
    different = {
        normalize_query(own.question): own for own in asked if own.question and own.lexemes
    }
    intents = Counter(own.intent for own in asked if own.intent)
    mix = category_shift(golden_intents, intents) if golden_intents and intents else None
    if not different or not golden_lexemes:
        return QuestionDrift(len(different), intents=mix)
    near = {key: _nearness(own.lexemes, golden_lexemes) for key, own in different.items()}
    far = sorted((share, key) for key, share in near.items() if share < FAR)
    return QuestionDrift(
        len(different),
        tuple(different[key].question or "" for _, key in far),
        sum(near.values()) / len(near),
        mix,
    )


def _nearness(lexemes: Set[str], golden: Sequence[Set[str]]) -> float:
    return max(len(lexemes & own) / len(lexemes) for own in golden)
