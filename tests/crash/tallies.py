"""The record of kills, a line for each in a file: whoever was stopped goes on from there."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Kill:
    """A kill and what came of it.

    Attributes:
        kind: The name of its kind.
        moment_s: Since the work began.
        missed: How often the work had ended before there was something to kill.
        freed_s: After the restart, until no dead run was in progress; None if never.
        problems: Violations; empty if all is well.
        seconds: All of it.
    """

    kind: str
    moment_s: float
    missed: int = 0
    freed_s: float | None = None
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


class KillLog:
    """The kills of a file, and those that are added.

    Args:
        path: Created if missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self.kills = [Kill(**json.loads(line)) for line in lines]

    def add(self, kills: Sequence[Kill]) -> None:
        """Store those that were compared together, all at once."""
        lines = [json.dumps(asdict(kill), ensure_ascii=False) + "\n" for kill in kills]
        with self._path.open("a", encoding="utf-8") as file:
            file.write("".join(lines))
        self.kills.extend(kills)

    def count(self, kind: str) -> int:
        """Count the kills of a kind."""
        return sum(kill.kind == kind for kill in self.kills)

    def next_kind(self, kinds: Sequence[str]) -> str:
        """Return the kind with the fewest kills; the first of several."""
        return min(kinds, key=self.count)

    def problems(self) -> list[str]:
        """Return everything that was wrong."""
        return [
            f"{kill.kind}, after {kill.moment_s:.1f} s: {problem}"
            for kill in self.kills
            for problem in kill.problems
        ]


def table(log: KillLog, kinds: Sequence[str], skipped: Sequence[str] = ()) -> str:
    """Say it in lines for a person.

    Args:
        log: The kills.
        kinds: In the order of the lines.
        skipped: Of these, those that cannot be tried here.
    """
    lines = [f"{'what was killed':24} kills  too late  freed after s  with problems"]
    for kind in kinds:
        kills = [kill for kill in log.kills if kill.kind == kind]
        freed = [kill.freed_s for kill in kills if kill.freed_s is not None]
        lines.append(
            f"{kind:24} {len(kills):5}  {sum(kill.missed for kill in kills):8}  "
            f"{f'{max(freed):.0f} at most' if freed else '–':>13}  "
            f"{sum(bool(kill.problems) for kill in kills)}"
            + "  SKIPPED: this user may not mount a file system"
            * (kind in skipped)
        )
    return "\n".join([*lines, *(f"PROBLEM: {problem}" for problem in log.problems()), ""])
