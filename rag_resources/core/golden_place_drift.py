"""The effects of edited notes on the places of golden questions, for `core.golden_drift`."""

from dataclasses import dataclass
from typing import Any

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_places import LocatedPlace
from rag_resources.core.messages import Message
from rag_resources.core.quoting import shown


@dataclass(frozen=True, slots=True)
class QuestionPlace:
    """A place of a question that is no longer at its stored position.

    Attributes:
        note: Name of its note for display.
    """

    entry: GoldenEntry
    place: LocatedPlace
    note: str

    @property
    def finding(self) -> str:
        """What a person should check; empty if the exact text has only moved."""
        place = self.place
        values = {
            "text": shown(place.stated.text),
            "note": self.note,
            "query": self.entry.query,
            "golden_id": self.entry.golden_id,
        }
        if place.similarity is None:
            return Message.DRIFT_PLACE_LOST.format(**values)
        if place.similarity < 1:
            return Message.DRIFT_PLACE_CHANGED.format(similarity=place.similarity, **values)
        if place.is_doubtful:
            return Message.DRIFT_PLACE_AMBIGUOUS.format(occurrences=place.occurrences, **values)
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        place = self.place
        found = None if place.is_lost else {"start": place.start, "end": place.end}
        return {
            "id": str(self.entry.golden_id),
            "query": self.entry.query,
            "place": place.stated.to_json(),
            "found": found,
            "similarity": place.similarity,
            "occurrences": place.occurrences,
        }
