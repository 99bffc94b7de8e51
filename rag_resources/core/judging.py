"""Judges answers: their claims, the evidence for them, and mean scores over many answers.

Faithfulness and answer relevance are defined as in RAGAS (Es et al. 2023, arXiv:2309.15217). The
judges are in `evaluation.judge`. docs/decisions.md says how well the embedded judge agrees with
labelled answers.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import fmean

from rag_resources.core.answers import Answer
from rag_resources.core.blocks import rendered
from rag_resources.core.rules import rules
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span
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
"""Share of a claim's new words that its evidence must contain."""
MIN_COSINE = 0.5
"""Least cosine between a claim and its evidence, with vectors of use_multilingual."""
FULL_COSINE = 0.5
"""Cosine between question and answer from which the answer is fully relevant; at half of it, the
relevance is 0.5."""

RULES_VERSION = version_of(
    "embedded-5",
    [asdict(rules().words), asdict(rules().sentences), MIN_SHARE, MIN_COSINE, FULL_COSINE],
    first="1fe7610e6b083fd3",
)
"""Version of the rules below, of the word lists they use and of the thresholds."""

_WORDS_BEFORE = 4
"""Words before a verb among which its negation stands."""
_CLAUSE_BORDER = re.compile(r"[;:—]")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's scores of an answer.

    Attributes:
        faithfulness: Share of its claims that the passages support, in [0, 1]; None for an answer
            without claims, or one that the judge cannot judge.
        answer_relevance: How relevant it is to the question, in [0, 1]; 0 for the answer that the
            passages contain none.
        unsupported: Its unsupported claims, in order.
    """

    faithfulness: float | None
    answer_relevance: float
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeInfo:
    """The judge, as stored with every result.

    Attributes:
        name: `embedded` or `llm`.
        model: Name of the model, with the digest of its weights if that is known.
        version: Version of the rules or of the prompt, and how often each answer was judged.
        answerer: Name and version of the answerer.
    """

    name: str
    model: str
    version: str
    answerer: str


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer with its judgement; either is None if it failed, and `failure` says why."""

    answer: Answer | None
    judgement: Judgement | None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeSummary:
    """A judge's scores over all answers of an evaluation.

    Attributes:
        judged: Number of answers with a judgement.
        failures: Answers that could not be made or judged; they count as missing, not as 0.
        faithfulness: Mean over the answers that have one; None if there are none.
        answer_relevance: Mean over the judged answers; None if there are none.
        answers: By golden id; a question without results has none.
    """

    info: JudgeInfo
    judged: int
    failures: int
    faithfulness: float | None
    answer_relevance: float | None
    answers: Mapping[str, JudgedAnswer]


def claims(answer: str) -> list[str]:
    """Return the sentences of an answer that claim something checkable."""
    texts = (" ".join(answer[span.start : span.end].split()) for span in sentences(answer))
    return [text for text in texts if content(text)]


def judgement_of(
    answer_claims: Sequence[str], supported: Sequence[bool], relevance: float
) -> Judgement:
    """Return the judgement of an answer; `supported` has one flag per claim."""
    return Judgement(
        faithfulness=fmean(supported) if supported else None,
        answer_relevance=relevance,
        unsupported=tuple(
            claim for claim, holds in zip(answer_claims, supported, strict=True) if not holds
        ),
    )


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a passage that can support a claim: a sentence, two adjacent ones or a clause.

    Attributes:
        text: On one line.
        span: In the passage.
    """

    text: str
    span: Span


def pieces_of(passage: str) -> list[Piece]:
    """Return the pieces of a passage that can support a claim: sentences, pairs, clauses."""
    own = sentences(passage)
    pairs = [Span(first.start, second.end) for first, second in pairwise(own)]
    clauses = [clause for span in own for clause in _clauses(passage, span)]
    return [
        Piece(" ".join(passage[span.start : span.end].split()), span)
        for span in (*own, *pairs, *clauses)
    ]


def _clauses(passage: str, sentence: Span) -> list[Span]:
    borders = list(_CLAUSE_BORDER.finditer(passage, sentence.start, sentence.end))
    starts = [sentence.start, *(border.end() for border in borders)]
    ends = [*(border.start() for border in borders), sentence.end]
    found = []
    for start, end in zip(starts, ends, strict=True):
        text = passage[start:end]
        left = start + len(text) - len(text.lstrip())
        if text.strip():
            found.append(Span(left, left + len(text.strip())))
    return found


def evidence(passages: Sequence[str]) -> list[str]:
    """Return the texts of the pieces that can support a claim, without repeats."""
    return list(dict.fromkeys(piece.text for own in passages for piece in pieces_of(own)))


def quote_span(claim: str, passage: str) -> Span | None:
    """Return where a passage has a claim word for word; spaces and bars between cells are alike."""
    words = r"[\s|]+".join(map(re.escape, claim.replace("|", " ").split()))
    found = re.search(rf"(?<!\w){words}(?!\w)", passage)
    return Span(*found.span()) if found and words else None


def is_quote(claim: str, passages: Sequence[str]) -> bool:
    """Whether a passage, or what it shows, has a claim word for word (`quote_span`)."""
    return any(
        quote_span(claim, text) for passage in passages for text in (passage, rendered(passage))
    )


def could_support(claim: str, piece: str, question: str) -> bool:
    """Whether a piece of evidence supports a claim, judged by its words.

    It must contain every number and name of the claim that is not in the question, be negated if
    and only if the claim is, where it says the same, and contain at least `MIN_SHARE` of the words
    that the claim adds to the question (of all its words if it adds none). This ignores who did
    what to whom, synonyms, and negation without a "no". A claim that summarises a passage in other
    words counts as unsupported.
    """
    if not has_its_facts(claim, piece, question):
        return False
    said = content(claim)
    if is_negated(claim) != is_negated(_part_about(said, piece)):
        return False
    return share(said - content(question) or said, content(piece)) >= MIN_SHARE


def _part_about(said: Collection[str], piece: str) -> str:
    """Return a piece from before its first word of a claim to the end of the last one's clause.

    What is denied before or after that is not what the claim says.
    """
    words = list(re.finditer(r"\w+", piece))
    own = [at for at, word in enumerate(words) if not content(word[0]).isdisjoint(said)]
    if not own:
        return piece
    conjunctions = "|".join(rules().sentences.conjunctions)
    clause_end = re.compile(rf"[,;:.—(]|\b(?:{conjunctions})\b").search(piece, words[own[-1]].end())
    end = clause_end.start() if clause_end else len(piece)
    return piece[words[max(0, own[0] - _WORDS_BEFORE)].start() : end]


def has_its_facts(claim: str, piece: str, question: str) -> bool:
    """Whether a piece has every number and name of a claim that the question does not have.

    This is the part of `could_support` that also works between two languages.
    """
    return numbers(claim) <= numbers(piece) | numbers(question) and names(claim) <= word_set(
        piece
    ) | word_set(question)


def relevance(cosine: float) -> float:
    """Turn a cosine between question and answer into an answer relevance in [0, 1].

    It is linear from 0 to `FULL_COSINE`. So 0.5 is the best threshold between relevant and
    irrelevant answers.
    """
    return min(1.0, max(0.0, cosine / FULL_COSINE))


def summarize_judgements(info: JudgeInfo, answers: Mapping[str, JudgedAnswer]) -> JudgeSummary:
    """Compute the means over the judged answers. Property 28."""
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
