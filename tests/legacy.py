"""A database of the old application: its table with 5,000 notes, some of them odd."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg

from tests.ollama_server import embed_words

DIMENSION = 768
FIRST = datetime(2024, 1, 3, 9, 30, 0, 123456, tzinfo=UTC)
MONTHS = 24

TABLE = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE notes (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    content text,
    embedding vector,
    created_at timestamptz DEFAULT now(),
    mood text
);
"""

# What else an application has around its table.
SURROUNDINGS = """
CREATE INDEX notes_embedding_old ON notes
USING ivfflat ((embedding::vector(768)) vector_cosine_ops) WITH (lists = 10)
WHERE vector_dims(embedding) = 768;
CREATE TABLE written (note_id uuid, at timestamptz);
CREATE FUNCTION log_write() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN INSERT INTO written VALUES (new.id, now()); RETURN NULL; END$$;
CREATE TRIGGER logged AFTER INSERT OR UPDATE ON notes FOR EACH ROW EXECUTE FUNCTION log_write();
CREATE VIEW recent AS SELECT * FROM notes WHERE created_at > now() - interval '1 month';
"""

WEIRD = [
    "NULL",
    "\\N",
    "null; DROP TABLE notes; --",
    " ".join(f"canción{number}" for number in range(80_000))[:1_000_000],
    "😀 👩‍👩‍👧 🇪🇸 👍🏽",
    "Camio\u0301n, pingu\u0308ino y corazo\u0301n.",
    "מחר נלך לים. غدًا نذهب إلى البحر.",
    "uno\x01dos\x07tres\x1b[31m\x7f cuatro\u0085 cinco\u2028seis\ufeff",
    "<script>alert('hola')</script><p>Una <b>nota</b>&nbsp;con HTML.</p>",
    "def f(x):\n\treturn {'a': [x] * 3}  # código\n" * 40,
    "x" * 20_000,
    "Ⱥ" * 1_000,
    "una\r\nlínea\rotra\n\n\n",
    "𝕌𝕟𝕒 ﬁesta Ａncha",
    "https://ejemplo.es/" + "a/" * 900,
]
BLANK = [None, "", " ", " \n\t\u00a0\u3000 ", "\x1c\x85"]
DATES = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2023, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(2099, 1, 1, tzinfo=UTC),
]
PLACES = ["Orriols", "Paiporta", "Catarroja", "Teruel", "Vallibona", "Barracas", "Ruzafa"]
REPEATED = "Comprar pan, leche y huevos. Llamar a la fontanera."


def content_of(number: int) -> str | None:
    """What a note says: first the weird ones, then plain ones with a word of their own."""
    if number < len(WEIRD):
        return WEIRD[number]
    if number < len(WEIRD) + len(BLANK):
        return BLANK[number - len(WEIRD)]
    if number % 50 == 0:
        return REPEATED
    place = PLACES[number % len(PLACES)]
    return f"Palabra{number}única: reunión en {place}. " + f"Vera tiene el acta de {place}. " * (
        number % 12
    )


def vector_of(number: int, content: str | None) -> list[float] | None:
    """The old model's vector of a note, not normalised; sometimes missing or unusable."""
    if number % 11 == 3 or content is None:
        return None
    if number % 97 == 5:
        return [0.0] * DIMENSION if number % 2 else [1.0, 2.0, 3.0]
    return [3.0 * value for value in embed_words(content[:4000], DIMENSION)]


def rows(count: int) -> Iterator[tuple[UUID, str | None, list[float] | None, datetime, str]]:
    """The notes: id, content, vector, time, and a column of the old application's own."""
    rng = random.Random(8)
    for number in range(count):
        content = content_of(number)
        created_at = FIRST + timedelta(days=number * (MONTHS * 30) / count)
        if number % 1000 < len(DATES):
            created_at = DATES[number % 1000]
        identity = UUID(int=rng.getrandbits(128), version=4)
        yield identity, content, vector_of(number, content), created_at, "😀 bien"


def create_legacy(url: str, count: int) -> None:
    """Make the old application's database in an empty one."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TABLE)
        copying = "COPY notes (id, content, embedding, created_at, mood) FROM STDIN"
        with connection.cursor() as cursor, cursor.copy(copying) as copy:
            for identity, content, vector, created_at, mood in rows(count):
                copy.write_row(
                    (identity, content, str(vector) if vector else None, created_at, mood)
                )
        connection.execute(SURROUNDINGS)


def fingerprint(url: str) -> list[tuple[Any, ...]]:
    """The number of notes and vectors, and a hash of everything the old application wrote.

    Null content counts as empty, as after the migration.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(
            "SELECT count(*), count(embedding), md5(string_agg(md5(concat_ws('|', id,"
            " sha256(convert_to(coalesce(content, ''), 'UTF8')),"
            " extract(epoch FROM created_at), md5(vector_send(embedding)), mood)), '' ORDER BY id))"
            " FROM notes"
        ).fetchall()
