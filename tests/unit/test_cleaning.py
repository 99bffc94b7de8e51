"""What neighbouring pages repeat, page numbers and contents are removed, and nothing else."""

from collections.abc import Sequence

import pytest

from rag_resources.core.cleaning import clean
from rag_resources.core.documents import Block, BlockKind, Page, PageFailure, Run
from rag_resources.core.page_numbers import numbers_in_words, page_number
from rag_resources.core.places import Box

BODY = ("La primera línea del texto", "la segunda, distinta de todas")


def page(number: int, lines: Sequence[tuple[float, str]], kind: str = "paragraph") -> Page:
    """A page with a block for each line, at its height."""
    text, blocks = "", []
    for top, line in lines:
        start = len(text)
        text += line + "\n"
        run = Run(start, start + len(line), Box(70, top, 500, top + 10))
        blocks.append(Block(start, run.end, BlockKind(kind), runs=(run,)))
    return Page(number, text, blocks=tuple(blocks))


def removed(pages: Sequence[Page | PageFailure]) -> list[dict[str, str]]:
    """What was removed of each page, with its reason."""
    return [
        {page.text[r.start : r.end]: r.reason for r in page.removed}
        for page in clean(pages)
        if isinstance(page, Page)
    ]


def body(number: int) -> list[tuple[float, str]]:
    return [(300, f"{BODY[0]} {'abcdefghij'[number]}"), (312, f"{BODY[1]} {'klmnopqrst'[number]}")]


def test_heads_and_feet_that_neighbours_repeat_are_removed() -> None:
    pages = [
        page(n, [(40, f"Plan de movilidad {n}"), *body(n), (800, "Ayuntamiento")])
        for n in range(1, 6)
    ]

    assert removed(pages) == [
        {f"Plan de movilidad {n}": "running_head", "Ayuntamiento": "running_foot"}
        for n in range(1, 6)
    ]
    assert [len(p.blocks) for p in clean(pages) if isinstance(p, Page)] == [2] * 5


def test_a_foot_is_the_same_with_its_page_number_beside_it_or_apart() -> None:
    pages = [
        page(1, [*body(1), (800, "Ayuntamiento"), (800, "1/2")]),
        page(2, [*body(2), (800, "Ayuntamiento 2/2")]),
    ]

    assert removed(pages) == [
        {"Ayuntamiento": "running_foot", "1/2": "page_number"},
        {"Ayuntamiento 2/2": "running_foot"},
    ]


def test_heads_of_chapters_and_of_left_and_right_pages_are_found_without_a_majority() -> None:
    heads = ["Uno", "Uno", "Uno", "Plan", "Dos", "Plan", "Dos", "Plan"]
    pages = [page(n, [(40, head), *body(n)]) for n, head in enumerate(heads, start=1)]

    assert [set(found) for found in removed(pages)] == [{head} for head in heads]


def test_a_line_repeated_elsewhere_on_the_page_stays() -> None:
    pages = [
        page(1, [(40, "Único"), (300, "Repetida"), (312, "Otra"), (500, "a"), (600, "b")]),
        page(2, [(90, "Distinto"), (400, "Repetida"), (412, "Más"), (520, "c"), (620, "d")]),
    ]

    assert removed(pages) == [{}, {}]


def test_rows_of_tables_that_go_on_stay() -> None:
    pages = [page(n, [(40, "Partida | 2024"), *body(n)], "table_row") for n in range(1, 4)]

    assert removed(pages) == [{}, {}, {}]


def test_the_title_of_a_table_on_two_pages_stays() -> None:
    title = "Tabla 14. Gasto previsto y real por capítulos, distritos y años, en euros"
    pages = [page(1, [(40, title), *body(1)]), page(2, [(40, title), *body(2)])]

    assert removed(pages) == [{}, {}]


@pytest.mark.parametrize(
    ("line", "value", "certain"),
    [
        ("12", 12, False),
        ("- 12 -", 12, False),
        ("xii", 12, False),
        ("XIV", 14, False),
        ("12 | Página", 12, True),
        ("Página 3 de 40", 3, True),
        ("Pág. 7", 7, True),
        ("3 / 40", 3, True),
        ("3 de 40", 3, True),
        ("p. 9", 9, True),
    ],
)
def test_page_numbers_are_recognised(line: str, value: int, certain: bool) -> None:
    number = page_number(line)

    assert number is not None
    assert (number.value, number.certain) == (value, certain)


@pytest.mark.parametrize("line", ["Artículo 12", "1.250,50 €", "12 personas", "vivid", "mil", ""])
def test_other_lines_are_no_page_numbers(line: str) -> None:
    assert page_number(line) is None


def test_bare_numbers_are_removed_only_where_they_count_the_pages() -> None:
    pages = [page(n, [*body(n), (800, str(n + 6))]) for n in range(1, 4)]
    amounts = [page(n, [*body(n), (800, str(n * n + 50))]) for n in range(1, 4)]

    assert removed(pages) == [{str(n + 6): "page_number"} for n in range(1, 4)]
    assert removed(amounts) == [{}, {}, {}]


def test_contents_are_removed_and_text_after_them_stays() -> None:
    entries = [
        "Índice",
        "1. Introducción . . . . . . . . . 3",
        "2. Medidas de movilidad ........ 5",
        "2.1. Autobuses ............. 5",
        "2.2. Bicicletas ............ 8",
        "3. Presupuesto ............. 12",
        "4. Anexos ................ xiv",
        "El plan empieza aquí y gasta 12",
    ]
    lines = [(100 + 15 * n, line) for n, line in enumerate(entries)]

    (found,) = removed([page(1, lines)])

    assert found == dict.fromkeys(entries[1:7], "contents")


def test_numbers_at_the_ends_of_lines_are_no_contents() -> None:
    lines = ["Gastó 12", "y luego 30", "menos 7", "o quizá 90", "de los 3", "más los 44"]

    assert removed([page(1, [(100 + 15 * n, line) for n, line in enumerate(lines)])]) == [{}]


def test_failures_pass_and_pages_are_read_only_as_far_as_needed() -> None:
    failure = PageFailure(2, "X")
    taken = []

    def pages() -> object:
        for n in range(1, 30):
            taken.append(n)
            yield failure if n == 2 else page(n, [(40, "Plan"), *body(n % 10)])

    cleaned = clean(pages())  # type: ignore[arg-type]
    first, second = next(cleaned), next(cleaned)

    assert isinstance(first, Page)
    assert second is failure
    assert len(taken) <= 6


@pytest.mark.parametrize(
    ("numbers", "told"),
    [([], "–"), ([4], "4"), ([3, 1, 2], "1–3"), ([1, 2, 5, 7, 8], "1–2, 5, 7–8")],
)
def test_page_numbers_are_told_as_runs(numbers: list[int], told: str) -> None:
    assert numbers_in_words(numbers) == told
