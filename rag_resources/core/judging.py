"""How good an answer is: its claims, what supports them, and the numbers over many answers.

Faithfulness and answer relevance are those of RAGAS (Es et al. 2023, arXiv:2309.15217). Who judges
is `evaluation.judge`. docs/decisions.md has how far the embedded one agrees with labelled answers.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median

from rag_resources.core.answers import Answer, sentence_texts
from rag_resources.core.rules import rules
from rag_resources.core.versions import version_of
from rag_resources.core.wording import (
    content,
    is_negated,
    names,
    numbers,
    share,
    word_set,
)

MIN_SHARE = 0.8
"""Of a claim's new words, what its evidence must hold."""
MIN_COSINE = 0.5
"""Between a claim and its evidence, of use_multilingual's vectors."""
FULL_COSINE = 0.5
"""Between question and answer: from here on an answer is relevant in full, at half it may be."""

RULES_VERSION = version_of(
    "embedded-1",
    [asdict(rules().words), asdict(rules().sentences), MIN_SHARE, MIN_COSINE, FULL_COSINE],
    first="bacd34b7117c6c10",
)
"""Of the rules below, the words they compare and the thresholds."""

_CLAUSE_BORDER = re.compile(r"[;:—]")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge thinks of an answer.

    Attributes:
        faithfulness: Share of its claims that the passages support, in [0, 1]; None for an answer
            that claims nothing.
        answer_relevance: How far it is about the question, in [0, 1]; 0 if it is that the passages
            do not say.
        unsupported: Its claims without support, in order.
    """

    faithfulness: float | None
    answer_relevance: float
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeInfo:
    """What judged, as it is stored with every result.

    Attributes:
        name: `embedded` or `llm`.
        model: With the digest of its weights where that can be told.
        version: Of the rules or of the prompt, and how many times each answer was judged.
        answerer: What wrote the answers, with its version.
    """

    name: str
    model: str
    version: str
    answerer: str


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer with its judgement; either is None where it failed, and `failure` says why."""

    answer: Answer | None
    judgement: Judgement | None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeSummary:
    """What a judge thinks of all answers of an evaluation.

    Attributes:
        judged: Answers with a judgement.
        failures: Answers that could not be made or judged: missing values, not zeros.
        faithfulness: Mean over the answers that claim something; None if none does.
        answer_relevance: Mean over the judged ones; None if there are none.
        answers: By golden id; a question for which nothing was found has none.
    """

    info: JudgeInfo
    judged: int
    failures: int
    faithfulness: float | None
    answer_relevance: float | None
    answers: Mapping[str, JudgedAnswer]


def claims(answer: str) -> list[str]:
    """Return the sentences of an answer that say something that can be checked."""
    return [text for text in sentence_texts(answer) if content(text)]


def judgement_of(
    answer_claims: Sequence[str], supported: Sequence[bool], relevance: float
) -> Judgement:
    """Return the judgement of an answer by which of its claims are supported, one flag each."""
    return Judgement(
        faithfulness=fmean(supported) if supported else None,
        answer_relevance=relevance,
        unsupported=tuple(
            claim for claim, holds in zip(answer_claims, supported, strict=True) if not holds
        ),
    )


def middle_judgement(samples: Sequence[Judgement], answer_claims: Sequence[str]) -> Judgement:
    """Return one judgement of at least one: a claim stands by majority, relevance is the median.

    A tie counts against the claim.
    """
    supported = [
        sum(claim not in sample.unsupported for sample in samples) * 2 > len(samples)
        for claim in answer_claims
    ]
    return judgement_of(
        answer_claims, supported, median(sample.answer_relevance for sample in samples)
    )


def evidence(passages: Sequence[str]) -> list[str]:
    """Return what can support a claim: sentences, neighbouring pairs, clauses; none twice."""
    pieces: dict[str, None] = {}
    for passage in passages:
        texts = sentence_texts(passage)
        pairs = (" ".join(texts[place : place + 2]) for place in range(len(texts) - 1))
        clauses = (part.strip() for text in texts for part in _CLAUSE_BORDER.split(text))
        pieces.update(dict.fromkeys((*texts, *pairs, *filter(None, clauses))))
    return list(pieces)


def is_quote(claim: str, passages: Sequence[str]) -> bool:
    """Whether a claim stands in a passage word for word, white space aside."""
    quote = re.compile(rf"(?<!\w){re.escape(claim)}(?!\w)")
    return any(quote.search(" ".join(passage.split())) for passage in passages)


def could_support(claim: str, piece: str, question: str) -> bool:
    """Whether a piece of evidence says, as far as words show, what a claim says.

    It holds every number and name of the claim, denies if the claim denies, and holds at least
    `MIN_SHARE` of the words that the claim adds to the question (of all its words if it adds
    none). Blind to who did what to whom, to synonyms, to words that deny without a "no"; and it
    takes a claim that sums up a whole passage in other words for unsupported.
    """
    if not numbers(claim) <= numbers(piece) | numbers(question):
        return False
    if not names(claim) <= word_set(piece) | word_set(question):
        return False
    if is_negated(claim) != is_negated(piece):
        return False
    said = content(claim)
    return share(said - content(question) or said, content(piece)) >= MIN_SHARE


def relevance(cosine: float) -> float:
    """Return the answer relevance of a cosine between question and answer, in [0, 1].

    Linear from 0 to `FULL_COSINE`, so that 0.5 separates relevant from irrelevant best.
    """
    return min(1.0, max(0.0, cosine / FULL_COSINE))


def summarize_judgements(info: JudgeInfo, answers: Mapping[str, JudgedAnswer]) -> JudgeSummary:
    """Compute the means over what was judged. Property 28."""
    judgements = [item.judgement for item in answers.values() if item.judgement]
    faithful = [item.faithfulness for item in judgements if item.faithfulness is not None]
    return JudgeSummary(
        info=info,
        judged=len(judgements),
        failures=len(answers) - len(judgements),
        faithfulness=fmean(faithful) if faithful else None,
        answer_relevance=(
            fmean(item.answer_relevance for item in judgements) if judgements else None
        ),
        answers=answers,
    )
