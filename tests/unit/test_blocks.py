"""What a reader of a rendered note sees, and of which kind each part is."""

import pytest

from rag_resources.core.blocks import read, rendered
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span
from rag_resources.core.windows import WindowsConfig, cut_windows, window_words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Acta\n\n## Dudas\nNadie.", "Acta\nDudas\nNadie."),
        (
            "Se propone **cambiar las tejas** y *La plaza*.",
            "Se propone cambiar las tejas y La plaza.",
        ),
        ("2 * 3 * 4 = 24, 2*3*4, a**b", "2 * 3 * 4 = 24, 2*3*4, a**b"),
        ("plan_de_obra_2025.pdf, C# y #etiqueta", "plan_de_obra_2025.pdf, C# y #etiqueta"),
        ("Va [[Marta Gil]] con [[Arquitectura|el plano]].", "Va Marta Gil con el plano."),
        ("- [x] hecho\n- [ ] por hacer\n\n3. tres", "hecho\npor hacer\n3. tres"),
        (
            "> [!warning]- Humedad\n> El tabique rezuma.\n\n![[plano.png|400]]",
            "Humedad\nEl tabique rezuma.",
        ),
        ("La coo\u00adpe\u200bra\u00adti\u00adva y la vi&ntilde;a", "La cooperativa y la viña"),
        ("cami\u006f\u0301n", "camión"),
        ("Antes %%no se ve%% después <!-- ni esto -->.", "Antes después ."),
        ("`%%a%%` y <b>negrita</b><br>fin", "%%a%% y negrita fin"),
        ("<div>\n<p>Uno &amp; dos</p>\n<script>x()</script>\n</div>", "Uno & dos"),
        ("| Entidad | Importe |\n|---|---:|\n| Club | **12** |", "Entidad | Importe\nClub | 12"),
        (
            "- id:: 64f0c3a2\n  Hablé con [[Íñigo]]\n  :LOGBOOK:\n  CLOCK: 3\n  :END:",
            "Hablé con Íñigo",
        ),
        (
            "autora:: Rosa Chacel\nleído:: sí\nEs ==de lo mejor== del año. ^cita\n\na == b, x^2",
            "autora: Rosa Chacel\nleído: sí\nEs de lo mejor del año.\na == b, x^2",
        ),
        ("Libros:\n\n```dataview\nLIST FROM #libro\n```\n\n```sh\nls\n```", "Libros:\nls"),
        ("De $5,$6 a $7; $a*b*c_1$\n\n$$\nx*y*z\n$$", "De $5,$6 a $7; $a*b*c_1$\n$$\nx*y*z\n$$"),
        ("[la web](https://ejemplo.es) y <https://a.es>", "la web y https://a.es"),
        ("", ""),
    ],
)
def test_a_text_shows_what_its_program_shows(text: str, shown: str) -> None:
    assert rendered(text) == shown


def test_each_part_is_a_block_below_its_headings() -> None:
    text = (
        "# Coche\n\n## Matrícula\n1234 KLM\n\n## Seguro\nCon la mutua:\n\n- uno\n\n```\nls\n```\n"
    )
    reading = read(text)
    told = [
        (block.kind, block.headings, reading.rendered(block.span.start, block.span.end))
        for block in reading.blocks
    ]
    assert told == [
        ("heading", (), "Coche"),
        ("heading", ("Coche",), "Matrícula"),
        ("paragraph", ("Coche", "Matrícula"), "1234 KLM"),
        ("heading", ("Coche",), "Seguro"),
        ("paragraph", ("Coche", "Seguro"), "Con la mutua:"),
        ("item", ("Coche", "Seguro"), "uno"),
        ("code", ("Coche", "Seguro"), "ls"),
    ]


@pytest.mark.parametrize(
    "messages",
    [
        [
            "2/3/26, 9:43 - Berta: El grifo. Gotea.",
            "2/3/26, 9:50 - Ana: Vendo *la* bici",
            "y el casco",
        ],
        ["[2/3/26, 9:43:12] Berta: El grifo. Gotea.", "[02/03/2026 21:50:01] Ana: Vendo la bici"],
        [
            "\u200e[2/3/26, 9:43:12\u202fa. m.] Berta: El grifo",
            "[2/3/26, 9:50:00\u202fp. m.] Ana: No",
        ],
        ["[2026-03-02, 9:43:12 p. m.] Berta: El grifo", "[2026-03-02, 9:50:00 p. m.] Ana: No"],
        ["2/3/26 9:43 p. m. - Berta: El grifo", "2/3/26 9:43 p. m. - Ana añadió a Luis"],
    ],
)
def test_a_message_of_a_chat_is_one_sentence_with_sender_and_time(messages: list[str]) -> None:
    text = "\n".join(messages)
    cut = [text[span.start : span.end] for span in sentences(text)]
    assert [block.kind for block in read(text).blocks] == ["message", "message"]
    assert cut == [messages[0], "\n".join(messages[1:])]


@pytest.mark.parametrize(
    "table", ["| Mes | Euros |\n|---|---|\n| Enero | 3 |", "Mes\tEuros\nEnero\t3"]
)
def test_a_row_is_searched_with_the_names_of_its_columns(table: str) -> None:
    text = f"Gastos. Son altos.\n\n{table}"
    words = [window_words(text, span) for span in cut_windows(text, WindowsConfig())]
    assert [" ".join(own.replace("|", " ").split()) for own in words] == [
        "Gastos.",
        "Son altos.",
        "Mes Euros",
        "Mes Euros Enero 3",
    ]


def test_links_and_tags_of_a_text_are_known_and_what_is_left_out_is_told() -> None:
    reading = read(
        "#diario Con [[Rosa Chacel#Vida|Rosa]], [[Rosa Chacel]] y ![[Barrio]] ![[plano.png]]\n"
        "%%no%% #viaje/norte, #12, a#b, [x](#y), `#c` <!-- ni -->\n\n```tasks\n#d\n```\n"
    )
    assert reading.links == ("Rosa Chacel", "Barrio")
    assert reading.tags == ("diario", "viaje/norte")
    assert reading.left_out == {"comment": 17, "query": 15}


def test_a_range_shows_its_own_text_and_its_hidden_part_is_told() -> None:
    text = "Uno **dos** tres %%cuatro%% cinco"
    reading = read(text)
    assert reading.rendered(4, 9) == "dos"
    assert reading.hidden == (Span(17, 27),)
    assert [text[own.start : own.end] for own in reading.visible(Span(0, len(text)))] == [
        "Uno **dos** tres ",
        " cinco",
    ]
