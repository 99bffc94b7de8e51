"""Hypothesis strategies shared by the tests: notes, configurations, rankings, golden entries.

They generate valid values unless the name says otherwise; each test corrupts them as it needs.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from rag_resources.core.configuration import (
    ChunkingConfig,
    ContextConfig,
    RerankingConfig,
    RetrievalConfig,
    Strategy,
    TopKConfig,
    TransformationConfig,
)
from rag_resources.core.documents import Block, BlockKind, Page, Removal, Run, Section
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.fusion_config import (
    FusionConfig,
    RetrieverConfig,
    Retrievers,
)
from rag_resources.core.golden import CATEGORIES, GoldenEntry
from rag_resources.core.golden_places import GoldenPlace
from rag_resources.core.metrics import JudgedRanking
from rag_resources.core.places import Box, NoteSpan
from rag_resources.core.query import MAX_QUERY_CHARS
from rag_resources.core.retrievers import RetrieverName
from rag_resources.core.text import Span, count_tokens, is_blank
from rag_resources.store.notes import note_id
from tests.corpus import SOURCE, START, Draft

Draw = st.DrawFn

# --- Texts ------------------------------------------------------------------------------------

STORABLE = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
"""What PostgreSQL stores as text: anything but NUL and lone surrogates."""

WORDS = [
    *("a", "y", "o", "que", "pero", "porque", "si", "la", "de", "casa", "niño", "ÑANDÚ"),
    *("árbol", "electroencefalografista", "casa,", "tarde;", "así:", "—", "2024", "3,5", "12:30"),
    *("10.000", "https://ejemplo.es/a?b=1", "#etiqueta"),
    *(unicodedata.normalize("NFD", word) for word in ("camión", "él", "pingüino,")),
    *("😀", "👩‍👩‍👧", "🇪🇸", "👍🏽", "❤️"),
    *("Sr.", "Dra.", "n.º 12", "9 a. m.", "aprox.", "p. ej.", "EE. UU.", "etc.", "pág. 7"),
]
ENDS = [".", ".", ".", "!", "?", "…", "...", ".»", ")", "", ""]
SEPARATORS = [
    *(" ", " ", " ", "  ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\n- ", "\n* ", "\n1. ", "\t"),
    *("\u00a0", "\u2028", "\u3000", "\n# ", " — ", ""),
]


def long_words() -> st.SearchStrategy[str]:
    """One letter (accented, combined or an emoji) repeated up to several chunks' worth."""
    return st.builds(
        lambda letter, length: letter * length,
        st.sampled_from(["x", "ñ", "e\u0301", "😀"]),
        st.integers(1, 400),
    )


# Made once: Hypothesis takes longer to check a new strategy than to draw from it.
@cache
def sentence_texts(max_words: int = 16) -> st.SearchStrategy[str]:
    """One sentence-like text: clauses between marks, perhaps without a full stop."""
    common = st.lists(st.sampled_from(WORDS), min_size=1, max_size=max_words).map(" ".join)
    raw = st.text(STORABLE, min_size=1, max_size=12)
    body = st.one_of(common, common, common, common, long_words(), raw)
    opening, end = st.sampled_from(["", "", "¿", "«"]), st.sampled_from(ENDS)
    return st.tuples(opening, body, end).map("".join)


@cache
def any_notes(max_sentences: int = 9) -> st.SearchStrategy[str]:
    """A note of any shape: paragraphs, lists, CRLF, odd white space at its edges; may be blank."""
    piece = st.tuples(st.sampled_from(SEPARATORS), sentence_texts()).map("".join)
    end = st.sampled_from(["", "", "\n", "\r\n", " \t", "\u3000"])
    return st.tuples(st.lists(piece, max_size=max_sentences).map("".join), end).map("".join)


def notes(max_sentences: int = 9) -> st.SearchStrategy[str]:
    """A note that is not blank."""
    return any_notes(max_sentences).filter(lambda text: bool(text.strip()))


def plain_notes(max_sentences: int = 30) -> st.SearchStrategy[str]:
    """A note of short, plain sentences: none is over-long for any configuration generated here."""
    sentence = st.integers(1, 56).map(lambda letters: "A" + "b" * letters + ".")
    return st.lists(sentence, min_size=1, max_size=max_sentences).map(" ".join)


def blank_texts() -> st.SearchStrategy[str]:
    """Nothing but white space, of every kind Unicode has."""
    return st.text(st.sampled_from(" \t\n\r\x0b\x0c\x1c\x85\u00a0\u2003\u2028\u2029\u3000"))


def visible_texts(max_size: int = 60) -> st.SearchStrategy[str]:
    """A storable text with at least one character that is not white space."""
    return st.text(STORABLE, min_size=1, max_size=max_size).filter(lambda text: bool(text.strip()))


# --- Chunking and context ---------------------------------------------------------------------


def count_words(text: str) -> int:
    """Count words: a token counter very unlike the estimate."""
    return len(text.split())


def count_bytes(text: str) -> int:
    """Count UTF-8 bytes: a token counter for which one character can be several tokens."""
    return len(text.encode())


def token_counters() -> st.SearchStrategy[Callable[[str], int]]:
    """The estimate, words or bytes; none decreases when a text grows."""
    return st.sampled_from([count_tokens, count_words, count_bytes])


@st.composite
def chunking_configs(draw: Draw, max_tokens: int = 96) -> ChunkingConfig:
    """A valid chunking configuration, small so that short notes give many chunks."""
    size = draw(st.integers(16, max_tokens))
    return ChunkingConfig(
        max_tokens=size,
        overlap_tokens=draw(st.one_of(st.integers(0, size // 3), st.integers(0, size - 1))),
        min_tokens=draw(st.one_of(st.integers(0, size // 3), st.integers(0, size - 1))),
    )


@st.composite
def structure_configs(draw: Draw) -> ChunkingConfig:
    """A valid configuration of the strategy `structure`, small as above."""
    longest = draw(st.integers(32, 300))
    shortest = draw(st.integers(0, longest // 2))
    return ChunkingConfig(
        strategy="structure",
        max=longest,
        min=shortest,
        target=draw(st.integers(max(16, shortest), longest)),
        overlap=draw(st.one_of(st.just(0), st.integers(0, longest // 3))),
    )


@cache
def structured_notes() -> st.SearchStrategy[str]:
    """A note of paragraphs, tables of lines with tabs or bars, lists and headings."""
    cell = st.sampled_from(["Mes", "Gasto total", "1.250,50 €", "Enero. Luego más.", "x" * 90])
    row = st.tuples(st.sampled_from(["\t", " | "]), st.lists(cell, min_size=2, max_size=4)).map(
        lambda drawn: drawn[0].lstrip() + drawn[0].join(drawn[1])
    )
    table = st.lists(row, min_size=1, max_size=8).map("\n".join)
    block = st.one_of(table, sentence_texts(), st.just("Un título"), any_notes(max_sentences=3))
    gap = st.sampled_from(["\n\n", "\n\n", "\n"])
    pieces = st.lists(st.tuples(block, gap).map("".join), max_size=4).map("".join)
    return st.tuples(pieces, table).map("".join)


def context_configs() -> st.SearchStrategy[ContextConfig]:
    """Up to four sentences on each side."""
    return st.builds(
        ContextConfig, sentences_before=st.integers(0, 4), sentences_after=st.integers(0, 4)
    )


def spans_of(text: str) -> st.SearchStrategy[Span]:
    """A non-empty span of a non-empty text, on any border."""
    return (
        st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
        .filter(lambda pair: pair[0] != pair[1])
        .map(lambda pair: Span(min(pair), max(pair)))
    )


# --- Retrieval configuration ------------------------------------------------------------------


@cache
def shares() -> st.SearchStrategy[float]:
    """A number in [0, 1], both ends and the negative zero included."""
    return st.one_of(st.sampled_from([0.0, -0.0, 0.5, 1.0]), st.floats(0, 1))


MODELS = ("e5_small", "use_m3", "nomic_embed_text")


def fusion_configs() -> st.SearchStrategy[FusionConfig]:
    """A valid fusion configuration of any method."""
    rank_constants = st.one_of(st.just(60), st.integers(1, 10_000))
    methods = st.sampled_from(["rrf", "weighted", "scaled"])
    return st.builds(FusionConfig, method=methods, rank_constant=rank_constants)


def weighed_retrievers() -> st.SearchStrategy[Retrievers]:
    """Valid weights of both retrievers."""
    some, none = shares().filter(bool), st.sampled_from([0.0, -0.0])

    def weights(
        semantic: st.SearchStrategy[float], fulltext: st.SearchStrategy[float]
    ) -> st.SearchStrategy[Retrievers]:
        return st.fixed_dictionaries(
            {
                RetrieverName.SEMANTIC: st.builds(
                    RetrieverConfig,
                    weight=semantic,
                    candidates=st.booleans(),
                ),
                RetrieverName.FULLTEXT: st.builds(RetrieverConfig, weight=fulltext),
            }
        )

    return st.one_of(weights(shares(), some), weights(some, none))


def reranking_configs(models: Sequence[str] = MODELS) -> st.SearchStrategy[RerankingConfig]:
    """A valid configuration of re-ranking, or of none."""
    return st.builds(
        RerankingConfig,
        enabled=st.sampled_from([True, True, True, False]),
        method=st.sampled_from(["sentences", "llm"]),
        model=st.sampled_from(models),
        weight=shares(),
        batch_size=st.integers(1, 50),
        timeout_ms=st.integers(1, 5_000),
    )


def transformation_configs() -> st.SearchStrategy[TransformationConfig]:
    """Any configuration of the transformation."""
    return st.builds(
        TransformationConfig,
        enabled=st.booleans(),
        decomposition=st.booleans(),
        coordinated=st.booleans(),
        hyde=st.booleans(),
    )


@st.composite
def top_k_configs(draw: Draw) -> TopKConfig:
    """Valid sizes."""
    final = draw(st.integers(1, 50))
    return TopKConfig(
        retrieval=draw(st.integers(final, 500)),
        reranking=draw(st.one_of(st.integers(1, 4), st.integers(1, 100))),
        final=final,
    )


def retrieval_configs(models: Sequence[str] = MODELS) -> st.SearchStrategy[RetrievalConfig]:
    """A valid retrieval configuration of some of these models."""
    return st.builds(
        RetrievalConfig,
        unit=st.sampled_from(["chunks", "notes"]),
        # Half of them re-rank: more can go wrong there than in the rest together.
        strategy=st.sampled_from([*Strategy, *[Strategy.HYBRID_RERANK] * 2]),
        model=st.sampled_from(models),
        similarity_threshold=st.none() | shares(),
        contextual=st.booleans(),
        retrievers=weighed_retrievers(),
        fusion=fusion_configs(),
        reranking=reranking_configs(models),
        transformation=transformation_configs(),
        diversity_weight=st.one_of(st.just(0.0), shares()),
        context=context_configs(),
        top_k=top_k_configs(),
    )


# --- A stored corpus, and what is asked of it --------------------------------------------------

INJECTIONS = [
    "' OR tenant_id = 'blas' --",
    "blas",
    "x' | 'y",
    "%",
    "\\",
    '{"tenant_id": "blas"}',
    "{tenant} :tenant %(tenant)s",
]
"""What a filter or a question might try."""

# So few that notes often meet a filter, or nearly.
TAGS = [("casa",), (INJECTIONS[0],), ("casa", INJECTIONS[0])]
METADATA_KEYS = ["lugar", INJECTIONS[-1]]
METADATA_VALUES = ["1", 1, True, None, INJECTIONS[0]]


def short_notes() -> st.SearchStrategy[str]:
    """A note of a few sentences."""
    return notes(max_sentences=4)


def drafts(*, foreign: bool = False) -> st.SearchStrategy[list[Draft]]:
    """One to four notes, perhaps the same; with `foreign`, some of another tenant or expired."""
    draft = st.builds(
        Draft,
        text=st.one_of(short_notes(), st.sampled_from(["La casa, 2024.", "Así: la tarde; y él."])),
        title=st.sampled_from(["", "Árbol 2024", "Camión"]),
        state=st.sampled_from(["indexed", "pending", "new"]),
        tenant=st.sampled_from(["ana", "ana", "blas"]) if foreign else st.just("ana"),
        expired=st.sampled_from([False, False, True]) if foreign else st.just(False),
        tags=st.sampled_from([(), *TAGS]),
        metadata=metadata(),
    )
    return st.lists(draft, min_size=1, max_size=4)


def metadata() -> st.SearchStrategy[dict[str, Any]]:
    """A few of the keys and values that the notes have."""
    return st.dictionaries(
        st.sampled_from(METADATA_KEYS), st.sampled_from(METADATA_VALUES), max_size=2
    )


@st.composite
def filters(draw: Draw) -> RetrievalFilters:
    """Up to three conditions, of what the drafts have or of what none has."""
    first = draw(st.integers(0, 2))
    noted = [note_id(tenant, SOURCE, str(n)) for tenant in ("ana", "blas") for n in range(4)]
    conditions = {
        "source": st.sampled_from([SOURCE, *INJECTIONS]),
        "tags": st.sampled_from(TAGS),
        "note_ids": st.lists(st.sampled_from(noted), min_size=1, max_size=6).map(tuple),
        "created_from": st.just(START + timedelta(days=first)),
        "created_until": st.just(START + timedelta(days=first + 1)),
        "metadata": metadata(),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(conditions)), min_size=1, max_size=3))
    return RetrievalFilters(**{name: draw(conditions[name], label=name) for name in chosen})


def questions() -> st.SearchStrategy[str]:
    """A few words of those in the notes, several such questions, or a sentence of any kind."""
    words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
    several = st.lists(words, min_size=2, max_size=3).map(lambda parts: f"¿{'? ¿'.join(parts)}?")
    return st.one_of(words, several, sentence_texts(max_words=6)).filter(
        lambda text: bool(text.strip()) and len(text) <= MAX_QUERY_CHARS
    )


def uuid_number(number: int) -> UUID:
    """A readable UUID for hand-written tests; their order is that of the numbers."""
    return UUID(int=number)


# --- Golden dataset ---------------------------------------------------------------------------


def timestamps() -> st.SearchStrategy[Any]:
    """An aware timestamp, of any whole-minute offset, that has a year in UTC too."""
    zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
    first, last = datetime(1, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001 - the zone comes after
    return st.datetimes(first, last, timezones=st.one_of(st.just(UTC), zones))


def golden_note_content(note_id: UUID) -> str:
    """Return the content of a relevant note of a generated entry: its own for every note."""
    return f"🚂 Nota {note_id}.\r\nEmpieza aquí, sigue así y acaba así: {note_id.hex[::-1]}. 👩‍👩‍👧"


@st.composite
def golden_places(draw: Draw, note_ids: Sequence[UUID]) -> GoldenPlace:
    """A place in one of the notes, on any border."""
    note_id = draw(st.sampled_from(list(note_ids)))
    content = golden_note_content(note_id)
    place = draw(
        spans_of(content).filter(lambda found: not is_blank(content[found.start : found.end]))
    )
    return GoldenPlace(note_id, place.start, place.end, content[place.start : place.end])


@st.composite
def golden_entries(draw: Draw) -> GoldenEntry:
    """A valid golden entry, tags, timestamps and places included."""
    entry = draw(_entries_without_places())
    places = st.lists(golden_places(entry.relevant_note_ids), max_size=3, unique=True)
    return replace(entry, places=tuple(draw(places)))


@cache
def _entries_without_places() -> st.SearchStrategy[GoldenEntry]:
    return st.builds(
        GoldenEntry,
        query=st.one_of(sentence_texts(max_words=6), visible_texts()).filter(
            lambda text: bool(text.strip())
        ),
        relevant_note_ids=st.lists(st.uuids(), min_size=1, max_size=4, unique=True).map(tuple),
        expected_answer=visible_texts(),
        category=st.sampled_from(CATEGORIES),
        difficulty=st.integers(1, 5),
        tags=st.lists(st.text(STORABLE, max_size=12), max_size=3).map(tuple),
        golden_id=st.none() | st.uuids(),
        created_at=st.none() | timestamps(),
        updated_at=st.none() | timestamps(),
    )


def golden_datasets(min_size: int = 0, max_size: int = 3) -> st.SearchStrategy[list[GoldenEntry]]:
    """Valid entries of which no two share a question."""
    return st.lists(
        golden_entries(),
        min_size=min_size,
        max_size=max_size,
        unique_by=(lambda entry: entry.folded_query, lambda entry: entry.golden_id or object()),
    )


# --- Metrics ----------------------------------------------------------------------------------


def judged_rankings() -> st.SearchStrategy[JudgedRanking]:
    """Retrieved notes of a question (maybe none or repeated), and the relevant ones."""
    note_ids = st.integers(0, 15).map(lambda number: f"nota-{number}")
    return st.builds(
        JudgedRanking,
        relevant=st.frozensets(note_ids, min_size=1, max_size=5),
        retrieved=st.lists(note_ids, max_size=30).map(tuple),
    )


def judged_runs(min_size: int = 0) -> st.SearchStrategy[dict[str, JudgedRanking]]:
    """The judged rankings of an evaluation by question id."""
    return st.dictionaries(
        st.integers(0, 50).map(lambda number: f"pregunta-{number}"),
        judged_rankings(),
        min_size=min_size,
        max_size=8,
    )


# --- Documents --------------------------------------------------------------------------------


@st.composite
def documents(draw: Draw) -> tuple[dict[int, Page], list[Section]]:
    """Pages of lines, some of them removed, and sections that run on over pages.

    A line of a page may be joined to the one before by white space, or by nothing as a word that
    was hyphenated is.
    """
    line = sentence_texts(max_words=4).filter(lambda text: bool(text.strip()))
    pages: dict[int, Page] = {}
    drafts: list[tuple[str, list[NoteSpan]]] = [("", [])]
    for number in range(1, draw(st.integers(1, 4)) + 1):
        text, removed = "", []
        for text_line in draw(st.lists(line, max_size=5)):
            start = len(text) + bool(text)
            text = f"{text}\n{text_line}" if text else text_line
            kind = draw(st.sampled_from(["joined", "joined", "joined", "new", "removed"]))
            if kind == "removed":
                removed.append(Removal(start, len(text), "running_head"))
                continue
            if kind == "new":
                drafts.append(("", []))
            note, spans = drafts[-1]
            note += draw(st.sampled_from([" ", "\n", "\r\n\r\n", ""]))
            box = Box(72, 10.0 * len(spans), 500, 10.0 * len(spans) + 9)
            spans.append(NoteSpan(len(note), len(note) + len(text_line), number, start, box))
            drafts[-1] = (note + text_line, spans)
        pages[number] = Page(number, text, removed=tuple(removed))
    sections = [
        Section(index, ("Plan", f"Apartado {index}"), text, tuple(spans))
        for index, (text, spans) in enumerate(draft for draft in drafts if draft[1])
    ]
    return pages, sections


@st.composite
def pages_with_blocks(draw: Draw) -> list[Page]:
    """The pages of a document as a reader makes them, or the sheets of a workbook.

    Between the runs of a block there is white space, a hyphen that was removed, or a removed line;
    between blocks there may be a running head.
    """
    sheets = draw(st.booleans())
    count = draw(st.integers(1, 4))
    return [
        _page_with_blocks(draw, number, sheet=f"Hoja {number}" if sheets else None)
        for number in range(1, count + 1)
    ]


def _page_with_blocks(draw: Draw, number: int, sheet: str | None) -> Page:
    line = sentence_texts(max_words=4).filter(lambda text: bool(text.strip()))
    text, blocks, removed = "", [], []
    for lines in draw(st.lists(st.lists(line, min_size=1, max_size=4), max_size=5)):
        if draw(st.integers(0, 4)) == 0:
            removed.append(Removal(len(text), len(text) + 5, "running_head"))
            text += "Plan \n"
        runs = []
        for position, content in enumerate(lines):
            if position:
                gap = draw(
                    st.sampled_from(["\n", "\n", " ", "\t", "-\n", "-\n", "\nnota 3\n", "12"])
                )
                if gap.strip():
                    removed.append(Removal(len(text), len(text) + len(gap.rstrip()), "hyphen"))
                text += gap
            where = {"cells": "B2"} if sheet else {"box": Box(72, 10, 500, 19.0 + position)}
            runs.append(Run(len(text), len(text) + len(content), **where))
            text += content
        kind = draw(st.sampled_from(BlockKind))
        level = draw(st.integers(1, 4)) if kind is BlockKind.HEADING else 0
        kept = draw(st.sampled_from([tuple(runs), tuple(runs), ()]))
        blocks.append(Block(runs[0].start, len(text), kind, level, kept))
        text += draw(st.sampled_from(["\n", "\n\n", " "]))
    quality = draw(st.sampled_from([None, 1.0, 0.3, 0.2]))
    removals = tuple(draw(st.permutations(removed)))
    return Page(number, text, sheet=sheet, blocks=tuple(blocks), removed=removals, quality=quality)


def unaccounted(page: Page, sections: Sequence[Section]) -> tuple[Span, ...]:
    """Return the text of a page that is in no section and was not removed. Property 46.

    White space does not count.
    """
    taken = [
        *(
            (span.page_start, span.page_end)
            for s in sections
            for span in s.spans
            if span.page == page.number
        ),
        *((removal.start, removal.end) for removal in page.removed),
        (len(page.text), len(page.text)),
    ]
    missing, last = [], 0
    for start, end in sorted(taken):
        if start > last and not is_blank(page.text[last:start]):
            missing.append(Span(last, start))
        last = max(last, end)
    return tuple(missing)
