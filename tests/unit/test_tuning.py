"""The settings of the embedded server, from the memory and the data there are."""

import re
from pathlib import Path

import pytest

from rag_resources.database import tuning

GIGABYTE = 1024


def sizes(monkeypatch: pytest.MonkeyPatch, *, memory: int, data: int) -> dict[str, int]:
    """The settings in megabytes, of a memory and data in megabytes."""
    monkeypatch.setattr(tuning, "total_memory", lambda: memory * tuning.MEGABYTE)
    text = tuning.settings_text(5432, Path("/s"), data_bytes=data * tuning.MEGABYTE)
    return {name: int(value) for name, value in re.findall(r"^(\w+) = (\d+)MB$", text, re.M)}


@pytest.mark.parametrize(
    ("memory", "data", "buffers"),
    [
        (512, 0, 128),
        (4 * GIGABYTE, 0, 512),
        (24 * GIGABYTE, 0, 1024),
        (24 * GIGABYTE, 3000, 3000),
        (24 * GIGABYTE, 50_000, 6 * GIGABYTE),
        (512, 50_000, 128),
    ],
)
def test_the_cache_grows_with_the_data_up_to_a_quarter_of_the_memory(
    monkeypatch: pytest.MonkeyPatch, memory: int, data: int, buffers: int
) -> None:
    assert sizes(monkeypatch, memory=memory, data=data)["shared_buffers"] == buffers


@pytest.mark.parametrize(
    ("memory", "build"), [(512, 64), (16 * GIGABYTE, 2 * GIGABYTE), (128 * GIGABYTE, 4096)]
)
def test_an_index_build_may_take_an_eighth_of_the_memory(
    monkeypatch: pytest.MonkeyPatch, memory: int, build: int
) -> None:
    assert sizes(monkeypatch, memory=memory, data=0)["maintenance_work_mem"] == build


def test_the_size_of_a_folder_is_that_of_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "inner" / "b").write_bytes(b"123")

    assert tuning.folder_bytes(tmp_path) == 8
    assert tuning.folder_bytes(tmp_path / "missing") == 0
