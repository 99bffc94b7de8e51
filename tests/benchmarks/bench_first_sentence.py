"""How long the first sentence of a language model's answer takes beyond the model's own time.

    python -m tests.benchmarks.bench_first_sentence

A server of OpenAI's protocol answers at once with a sentence of the first passage without its last
word, so that it is no quote and its check needs vectors. Passages are whole notes of the sample.
What is measured is all from the question to the first sentence: context, prompt, HTTP, reading of
the stream and check. The retrieval comes before it.
"""

import random
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import rag_assets
from rag_resources.answers.checking import CHECK_MODEL, SupportChecker
from rag_resources.answers.language_model import LanguageModelAnswerer
from rag_resources.cli.output import say
from rag_resources.core.metrics import percentile
from rag_resources.core.quotation import SourcePassage
from rag_resources.core.sentences import sentences
from rag_resources.providers.openai_chat import OpenAIChat
from rag_resources.providers.registry import build_embedder
from tests.language_models import reply
from tests.openai_server import OpenAIServer

NOTES = Path(rag_assets.__file__).parent / "sample" / "notes"
QUESTIONS = 200
PASSAGES = 5
QUESTION = "¿Qué pasó?"


def cases() -> list[tuple[str, list[SourcePassage]]]:
    """Return sentences that a model might write, with the passages that it got."""
    notes = [path.read_text("utf-8").split("---", 2)[2] for path in sorted(NOTES.rglob("*.md"))]
    drawn = random.Random(21)
    made = []
    for _ in range(QUESTIONS):
        passages = drawn.sample(notes, PASSAGES)
        pieces = [passages[0][own.start : own.end] for own in sentences(passages[0])]
        longest = max(pieces, key=len)
        written = longest.rstrip(".").rpartition(" ")[0] + "."
        made.append((written, [SourcePassage(text) for text in passages]))
    return made


def main() -> None:
    """Measure and print."""
    embedder = build_embedder(CHECK_MODEL)
    embedder.embed_passages([QUESTION])
    waits_ms: list[float] = []
    answered = 0
    replies: list[Any] = []
    with (
        OpenAIServer(answers=lambda *_: replies[-1]) as server,
        OpenAIChat("llama3.2", base_url=server.base_url) as chat,
    ):
        answerer = LanguageModelAnswerer(chat, SupportChecker(lambda: embedder))
        for written, passages in cases():
            replies.append(reply((written, [1])))
            begun = time.monotonic()
            with closing(answerer.stream(QUESTION, passages)) as sentences:
                answered += next(sentences, None) is not None
                waits_ms.append((time.monotonic() - begun) * 1_000)
    say(f"{QUESTIONS} answers, {answered} with a sentence that was supported")
    say(f"to the first sentence: {_told(waits_ms)}")


def _told(waits_ms: Sequence[float]) -> str:
    return ", ".join(
        f"{share:.0%} within {percentile(waits_ms, share):.0f} ms" for share in (0.5, 0.95, 1.0)
    )


if __name__ == "__main__":
    main()
