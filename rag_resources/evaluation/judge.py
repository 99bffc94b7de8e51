"""Judges of answers: an embedded model with rules, or a language model with a rubric.

Judgements and the rules are in `core.judging`; judging an evaluation is in `evaluation.judging`.
"""

import time
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Protocol

from pydantic import BaseModel, Field, create_model

from rag_resources.answers.language_model import CALL_MS
from rag_resources.answers.prompting import passages_as_data, question_as_data
from rag_resources.core.answers import MAX_CONTEXT_TOKENS, fitted
from rag_resources.core.deadline import Deadline
from rag_resources.core.judging import (
    MIN_COSINE,
    RULES_VERSION,
    Judgement,
    claims,
    could_support,
    evidence,
    is_quote,
    judgement_of,
    relevance,
)
from rag_resources.prompts import prompt
from rag_resources.providers.inputs import as_data
from rag_resources.providers.protocols import Embedder, LanguageModel

_BEST_GRADE = 4
_CONTEXT = "context-2"
"""Change this whenever the judge is shown other parts of the same passages."""


class Judge(Protocol):
    """Rates an answer, given the question and the passages it was made from."""

    @property
    def name(self) -> str:
        """The judge's name in the settings."""
        ...

    @property
    def model(self) -> str:
        """The model behind the judge, as stored with its judgements."""
        ...

    @property
    def version(self) -> str:
        """Version of the rules or the prompt; changes whenever judgements might differ."""
        ...

    def judge(self, question: str, answer: str, passages: Sequence[str]) -> Judgement:
        """Judge an answer made from at least one passage.

        Raises:
            ProviderError: The judge cannot be used.
            DeadlineExceededError: The judgement came too late.
        """
        ...


class EmbeddedJudge(Judge):
    """Judges by words and cosines, without a language model.

    A claim is supported by a piece of a passage that passes `could_support` and whose cosine with
    the claim is at least `MIN_COSINE`. Relevance is the cosine of question and answer, scaled. An
    answer that only quotes passages gets no faithfulness: a quote is true to its passage by
    construction, even if it is about somebody else than the question.

    Args:
        embedder: The model that the thresholds were set for, use_multilingual.

    Raises:
        ModelMissingError: The model is not installed.
    """

    name = "embedded"
    version = RULES_VERSION

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._model = f"{embedder.info.name} {embedder.info.digest}"

    @property
    def model(self) -> str:
        """The embedding model, with its weights' digest."""
        return self._model

    def judge(self, question: str, answer: str, passages: Sequence[str]) -> Judgement:
        """Judge an answer. Same errors as `Judge`."""
        own = claims(answer)
        pieces = evidence(passages)
        quotes = {claim for claim in own if is_quote(claim, passages)}
        found = {
            claim: [piece for piece in pieces if could_support(claim, piece, question)]
            for claim in own
            if claim not in quotes
        }
        unsure = {claim: near for claim, near in found.items() if near}
        texts = list(
            dict.fromkeys([answer, *unsure, *(p for near in unsure.values() for p in near)])
        )
        vectors = dict(zip(texts, self._embedder.embed_passages(texts), strict=True))
        asked = self._embedder.embed_queries([question])[0]
        supported = [
            claim in quotes
            or any(float(vectors[claim] @ vectors[piece]) >= MIN_COSINE for piece in found[claim])
            for claim in own
        ]
        relevant = relevance(float(asked @ vectors[answer]))
        if quotes.issuperset(own):
            return Judgement(faithfulness=None, answer_relevance=relevant)
        return judgement_of(own, supported, relevant)


class _Verdict(BaseModel):
    supported: list[bool]
    relevance: Annotated[int, Field(ge=0, le=_BEST_GRADE)]


class LanguageModelJudge(Judge):
    """Judges by a fixed rubric, at temperature 0.

    Args:
        language_model: Safe to use from several threads.
        timeout_ms: Longest wait for a judgement.
    """

    name = "llm"

    def __init__(self, language_model: LanguageModel, *, timeout_ms: float = CALL_MS) -> None:
        self._model = language_model
        self._timeout_ms = timeout_ms

    @property
    def model(self) -> str:
        """The language model."""
        return self._model.name

    @property
    def version(self) -> str:
        """Version of the prompt."""
        return f"{prompt('judge').version}-{_CONTEXT}"

    def judge(self, question: str, answer: str, passages: Sequence[str]) -> Judgement:
        """Judge an answer.

        Raises:
            InvalidAnswerError: The reply has no verdict per claim and a grade.
            ProviderError: The model cannot be used.
            DeadlineExceededError: It did not answer in time.
        """
        own = claims(answer)
        passages = fitted(passages, MAX_CONTEXT_TOKENS)
        shown = "\n".join(
            f'<afirmación n="{number}">\n{as_data(claim)}\n</afirmación>'
            for number, claim in enumerate(own, start=1)
        )
        data = f"{question_as_data(question)}\n{passages_as_data(passages)}"
        verdict = self._model.answer(
            f"{data}\n{shown}\n{prompt('judge').task}",
            _shape(len(own)),
            system=prompt("judge").system,
            deadline=Deadline.after(self._timeout_ms, time.monotonic),
        )
        return judgement_of(own, verdict.supported, verdict.relevance / _BEST_GRADE)


@cache
def _shape(count: int) -> type[_Verdict]:
    """Return the schema of a verdict on this many claims; constrained decoding enforces it."""
    return create_model(
        "Verdict",
        __base__=_Verdict,
        supported=(list[bool], Field(min_length=count, max_length=count)),
    )
