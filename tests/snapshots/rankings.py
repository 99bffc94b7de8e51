"""The first ten notes of every question of the sample, by several configurations."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx

SAMPLE = Path(__file__).parents[2] / "rag_assets" / "sample"

CONFIGURATIONS = ("hybrid_windows", "hybrid", "fulltext", "baseline")
CUTOFF = 10

_AT_ONCE = 2
_ATTEMPTS = 5


def relevant_notes(file: str) -> dict[str, set[str]]:
    """Return the relevant notes of each question of a golden file."""
    entries = json.loads((SAMPLE / file).read_text("utf-8"))["entries"]
    return {entry["query"]: set(entry["relevantNotes"]) for entry in entries}


def rankings(client: httpx.Client) -> dict[str, Any]:
    """Ask every question of the large golden set by every configuration.

    Returns:
        The external ids of all notes found, and for each question and configuration the first ten
        notes, best first, as their positions in that list.
    """
    questions = list(relevant_notes("golden-400.json"))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = {
            name: list(pool.map(partial(_first_notes, client, name), questions))
            for name in CONFIGURATIONS
        }
    notes = sorted({note for rows in found.values() for row in rows for note in row})
    numbers = {note: number for number, note in enumerate(notes)}
    return {
        "notes": notes,
        "questions": {
            question: {
                name: [numbers[note] for note in rows[place]] for name, rows in found.items()
            }
            for place, question in enumerate(questions)
        },
    }


def _first_notes(client: httpx.Client, configuration: str, question: str) -> list[str]:
    body = {"query": question, "configuration": configuration, "topK": CUTOFF}
    for _ in range(_ATTEMPTS):  # On a busy machine a search may miss its deadline.
        answer = client.post("/v1/retrieve", json=body).raise_for_status().json()
        if not answer["metadata"]["degraded"]:
            return list(dict.fromkeys(result["externalId"] for result in answer["results"]))
    raise RuntimeError(f"{configuration} is degraded: {answer['metadata']}")


def ranking_differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each configuration and golden set of which a ranking changed."""
    old, new = _named(before), _named(after)
    if old.keys() != new.keys():
        yield f"questions: {len(new.keys() - old.keys())} new, {len(old.keys() - new.keys())} gone"
    for file in ("golden.json", "golden-400.json"):
        relevant = relevant_notes(file)
        for name in CONFIGURATIONS:
            asked = [each for each in relevant if each in old and each in new]
            pairs = [(old[each].get(name, []), new[each].get(name, [])) for each in asked]
            changed = sum(first != second for first, second in pairs)
            if changed:
                overlap = fmean(_overlap(first, second) for first, second in pairs)
                measured = [
                    [
                        _measures(ranking, relevant[each])
                        for each, ranking in zip(asked, side, strict=True)
                    ]
                    for side in zip(*pairs, strict=True)
                ]
                mrr, hit_rate = (
                    " → ".join(f"{fmean(row[place] for row in side):.3f}" for side in measured)
                    for place in (0, 1)
                )
                yield (
                    f"{file} by {name}: {changed} of {len(asked)} questions changed, overlap "
                    f"{overlap:.3f}, MRR {mrr}, Hit_Rate@{CUTOFF} {hit_rate}"
                )


def _named(snapshot: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    notes = snapshot.get("notes", [])
    return {
        question: {name: [notes[number] for number in row] for name, row in rows.items()}
        for question, rows in snapshot.get("questions", {}).items()
    }


def _overlap(first: Sequence[str], second: Sequence[str]) -> float:
    return len({*first} & {*second}) / max(len(first), len(second), 1)


def _measures(ranking: Sequence[str], relevant: set[str]) -> tuple[float, float]:
    rank = next((rank for rank, note in enumerate(ranking, 1) if note in relevant), None)
    return (1 / rank, 1.0) if rank else (0.0, 0.0)
