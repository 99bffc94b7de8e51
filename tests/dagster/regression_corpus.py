"""Short notes, some found only by meaning and some only by a word."""

from pathlib import Path

from dagster_project import MONTHS, Corpus

CODE_MONTH, MEANING_MONTH = MONTHS[:2]
# What a note says, and a question for it in other words: full text is of no use.
MEANINGS = (
    ("El dentista me sacó la muela del juicio.", "¿cuándo me extrajeron una pieza de la boca?"),
    ("Se rompió la lavadora y salió agua.", "¿qué electrodoméstico inundó la casa?"),
    ("Compramos un perro pequeño y lo llamamos Tango.", "¿qué mascota adoptó mi familia?"),
    ("El tren a Sevilla llegó con retraso.", "¿qué viaje ferroviario se demoró?"),
    ("Mi hermana se casó en una playa.", "¿dónde fue la boda?"),
    ("El banco nos subió la hipoteca otra vez.", "¿cuánto más pagamos por el préstamo?"),
    ("Marta aprobó el examen de conducir.", "¿quién obtuvo el carné de coche?"),
    ("La nieve cortó la carretera del puerto.", "¿qué camino bloqueó el temporal?"),
    ("Sembramos tomates y lechugas.", "¿qué verduras plantamos en el huerto?"),
    ("Le pusieron gafas al niño.", "¿qué problema de vista tenía el hijo?"),
    ("El equipo ganó la final en los penaltis.", "¿cómo acabó el partido de fútbol?"),
    ("Robaron la bicicleta del portal.", "¿qué se llevaron los ladrones?"),
    ("Le recetaron antibióticos por el oído.", "¿qué medicamento tomó contra la otitis?"),
    ("Pintamos el salón de azul.", "¿qué color tienen ahora las paredes?"),
    ("Se fue la luz durante la tormenta.", "¿por qué nos quedamos sin electricidad?"),
    ("La abuela cumplió noventa años.", "¿qué aniversario celebró la anciana?"),
    ("Perdí el pasaporte en el aeropuerto.", "¿qué documento extravié al volar?"),
    ("El panadero ha cerrado por jubilación.", "¿qué comercio del barrio dejó de abrir?"),
    ("Leí una novela policíaca en dos días.", "¿qué libro de crímenes devoré?"),
    ("El gato se subió al tejado.", "¿qué felino trepó demasiado alto?"),
    ("Pedimos una pizza por teléfono.", "¿qué comida italiana cenamos?"),
    ("Un virus borró mis fotos del ordenador.", "¿qué imágenes eliminó el programa malicioso?"),
    ("Nos mudamos a un piso del centro.", "¿adónde cambiamos de domicilio?"),
    ("El jefe me dio un aumento de sueldo.", "¿cómo mejoró mi salario?"),
    ("Vimos una película de terror.", "¿qué cine nos asustó?"),
    ("Los vecinos se quejaron del ruido.", "¿quién protestó por la música alta?"),
    ("Aprendí a tocar la guitarra.", "¿qué instrumento musical estudié?"),
    ("Una avispa le picó en la mano.", "¿qué insecto le clavó el aguijón?"),
    ("Vimos un oso en la montaña.", "¿qué animal salvaje observamos en la excursión?"),
    ("El profesor de matemáticas está enfermo.", "¿qué docente faltó por salud?"),
)
# What a note says around its code, and the question for that: of what they say, nothing else tells
# such notes apart, and vectors hear little of it.
ERRANDS = (
    "Pedimos {thing} y {other}.",
    "El martes llegó {thing} con mucho retraso desde {place}.",
    "Hay que devolver {thing} a la tienda de {place}.",
    "Se acabó {thing}; compramos {other} en {place}.",
    "Mi primo de {place} trajo {thing} y {other} en la furgoneta.",
)
THINGS = ("tornillos", "cable", "aceite", "pintura", "madera", "filtro", "correa", "lámpara")
THINGS += ("motor", "cristal", "tubería", "pegamento", "clavos", "alambre", "tela", "papel")
THINGS += ("hierro", "cobre", "goma", "cuero")
PLACES = (
    "Sevilla",
    "Bilbao",
    "Cádiz",
    "Vigo",
    "Soria",
    "Teruel",
    "Murcia",
    "Ávila",
    "Burgos",
    "Lugo",
)
ERRANDS_A_NOTE = 4
CODES = tuple(f"zk{1000 + 37 * number}" for number in range(40))
ASKED_CODES = 20


def write_corpus(folder: Path) -> Corpus:
    """Write the notes and their questions."""
    corpus = Corpus(folder / "notes", folder / "golden.json")
    entries = []
    for number, (text, question) in enumerate(MEANINGS):
        name = _write(corpus, MEANING_MONTH, f"meaning-{number}", text)
        entries.append(_entry(question, name, text))
    for number, code in enumerate(CODES):
        text = f"{_errands(number)} Albarán {code}."
        name = _write(corpus, CODE_MONTH, f"code-{number}", text)
        if number < ASKED_CODES:
            entries.append(_entry(f"¿qué pone en el albarán {code}?", name, text))
    corpus.ask(entries)
    return corpus


def _write(corpus: Corpus, month: str, name: str, text: str) -> str:
    path = corpus.notes / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nid: {name}\ncreated_at: {month}\n---\n{text}\n", "utf-8")
    return name


def _errands(number: int) -> str:
    return " ".join(
        ERRANDS[(number + turn) % len(ERRANDS)].format(
            thing=THINGS[(3 * number + 5 * turn) % len(THINGS)],
            other=THINGS[(7 * number + turn) % len(THINGS)],
            place=PLACES[(number + 3 * turn) % len(PLACES)],
        )
        for turn in range(ERRANDS_A_NOTE)
    )


def _entry(question: str, note: str, answer: str) -> dict[str, object]:
    return {
        "query": question,
        "relevantNotes": [note],
        "expectedAnswer": answer,
        "category": "factual",
        "difficulty": 1,
    }
