"""Re-ranking by a language model, which reads passages in batches and scores each."""

import contextvars
import os
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Annotated

from pydantic import BaseModel, Field, create_model

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DeadlineExceededError
from rag_resources.languages.messages import _
from rag_resources.prompts import prompt
from rag_resources.providers.inputs import as_data, batches
from rag_resources.providers.model_server import MAX_CALLS
from rag_resources.providers.protocols import LanguageModel, Reranker

# Characters of all passages in one batch: enough for five whole chunks of 512 tokens, and within
# the 4,096 tokens of context that Ollama gives a model by default.
_BATCH_CHARS = 10_240

_Score = Annotated[float, Field(allow_inf_nan=False)]


class _Scores(BaseModel):
    scores: list[_Score]


class LanguageModelReranker(Reranker):
    """Scores passages by how well a language model finds that they answer the question.

    Batches run concurrently, at most `MAX_CALLS` in the whole process. If one fails, the call
    fails at once. No batch is waited for past the deadline; those still running stop at it by
    themselves.

    Args:
        language_model: Safe to use from several threads.
        batch_size: Passages per call, >= 1.
    """

    def __init__(self, language_model: LanguageModel, batch_size: int) -> None:
        self._model = language_model
        self._batch_size = batch_size

    def score(self, query: str, passages: Sequence[str], *, deadline: Deadline) -> list[float]:
        """Score passages. Same result as `Reranker`.

        Raises:
            InvalidAnswerError: An answer does not hold one finite score per passage.
            ProviderError: The model cannot be used.
            DeadlineExceededError: Some answer came too late.
        """
        calls = [
            _call_threads().submit(
                contextvars.copy_context().run, self._score_batch, query, batch, deadline
            )
            for batch in batches(passages, self._batch_size)
        ]
        try:
            return _gathered(calls, deadline)
        finally:
            for call in calls:
                call.cancel()

    def _score_batch(self, query: str, passages: Sequence[str], deadline: Deadline) -> list[float]:
        answer = self._model.answer(
            _request(query, passages),
            _shape(len(passages)),
            system=prompt("rerank").system,
            deadline=deadline,
        )
        return [min(1.0, max(0.0, score)) for score in answer.scores]


def _gathered(calls: Sequence[Future[list[float]]], deadline: Deadline) -> list[float]:
    """Return the scores of all calls, in order; raise the error of the first call that failed."""
    done, late = wait(calls, timeout=deadline.remaining_s, return_when=FIRST_EXCEPTION)
    for call in calls:
        if call in done and (error := call.exception()):
            raise error
    if late:
        raise DeadlineExceededError(
            _("There is no time left for this part of the search."), late=len(late), of=len(calls)
        )
    return [score for call in calls for score in call.result()]


def _request(query: str, passages: Sequence[str]) -> str:
    longest = _BATCH_CHARS // len(passages)
    shown = "\n".join(
        f'<pasaje n="{number}">\n{as_data(text[:longest])}\n</pasaje>'
        for number, text in enumerate(passages, start=1)
    )
    task = prompt("rerank").task.format(count=len(passages))
    return f"<pregunta>\n{as_data(query)}\n</pregunta>\n{shown}\n{task}"


@cache
def _shape(count: int) -> type[_Scores]:
    """Return the schema of an answer with this many scores; constrained decoding enforces it."""
    scores = (list[_Score], Field(min_length=count, max_length=count))
    return create_model("Scores", __base__=_Scores, scores=scores)


@cache
def _call_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="language-model")


# A forked child process does not have the threads of its parent.
os.register_at_fork(after_in_child=_call_threads.cache_clear)
