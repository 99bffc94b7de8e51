"""Readable text scores high, text of broken font maps low, whatever its kind."""

import random

import pytest

from rag_resources.core.page_quality import text_quality

SPANISH = (
    "El ayuntamiento aprobó ayer el plan de movilidad de la ciudad, que prevé nuevas líneas de "
    "autobús en los barrios del norte y del sur, más carriles para bicicletas y menos plazas de "
    "aparcamiento en el centro. La oposición pidió un estudio del gasto."
)
GOOD = {
    "prose": SPANISH,
    "capitals": SPANISH.upper(),
    "english": "The council approved the mobility plan, which provides new bus lines in the "
    "northern districts, more cycle lanes and fewer parking spaces in the centre of the town.",
    "catalan": "L'ajuntament va aprovar ahir el pla de mobilitat de la ciutat, que preveu noves "
    "línies d'autobús als barris del nord i del sud, més carrils per a bicicletes i menys places.",
    "numbers": "2023 1.250,50 € 310,00 € | 2024 1.400,00 € 520,75 € | 2025 1.560,50 € 1.920,75 € "
    "Total 3.210,00 12 % 14 % (3) 2.026,00 -4,2 100,0 17.202 98,1 0,3 45,6 Total 71.112",
    "contents": "1. Introducción ........................ 3\n2. Objetivos .................... 12\n"
    "3. Medidas de movilidad .................. 27\n4. Presupuesto ................... 41",
    "code": "for (int i = 0; i < n; i++) { total += precios[i] * cantidades[i]; } return total;\n"
    "$ cat /etc/passwd | grep -v '^#' | cut -d: -f1 | sort > usuarios.txt",
    "names": "Sra. M.ª José Núñez (PP), D. Íñigo Ybáñez (PNV), D.ª Xènia Vallès, Sr. Schwartz, "
    "McGregor, S. A. de Construcciones, ONG, UNESCO, DGT, IRPF, BOE n.º 123",
}


def shifted(text: str) -> str:
    """Each letter three further, as from a font whose codes are numbers of glyphs."""
    return "".join(chr(ord(c) + 3) if c.isalpha() else c for c in text)


def mixed_up(text: str) -> str:
    letters = "abcdefghijklmnopqrstuvwxyzáéíóúñ"
    other = list("zqxwkjvbhgfypmyhbvkjwxqzñúíóéáçß")
    return text.lower().translate(dict(zip(map(ord, letters), other, strict=True)))


BAD = {
    "shifted": shifted(SPANISH),
    "mixed up": mixed_up(SPANISH),
    "unknown": "".join("\ufffd" if c in "aeo" else c for c in SPANISH),
    "private": "".join(chr(0xE000 + ord(c)) if c.isalpha() else c for c in SPANISH),
    "control": "".join(chr(ord(c) % 31 + 1) if c.isalpha() else c for c in SPANISH) + "\x01" * 40,
    "symbols": "".join(chr(0x2500 + ord(c) % 200) if c.isalpha() else c for c in SPANISH),
    "low codes": "".join(chr(33 + ord(c) % 15) if c.isalpha() else c for c in SPANISH),
    "random capitals": "".join(
        c.upper() if random.Random(n).random() < 0.5 else c for n, c in enumerate(SPANISH)
    ),
    "scripts": "".join("αжب国क"[n % 5] if c in "aeios" else c for n, c in enumerate(SPANISH)),
}


@pytest.mark.parametrize("kind", GOOD)
def test_readable_text_scores_high(kind: str) -> None:
    assert text_quality(GOOD[kind]) > 0.7


@pytest.mark.parametrize("kind", BAD)
def test_garbled_text_scores_under_the_gate(kind: str) -> None:
    assert text_quality(BAD[kind]) < 0.3


def test_nearly_empty_pages_are_a_little_worse_and_empty_ones_have_no_quality() -> None:
    assert 0.7 < text_quality("Plan de gobierno") < text_quality(SPANISH) == 1.0
    assert text_quality(" \n") == 0.0
