"""What people read in place of a note's id."""

from uuid import UUID


def note_label(title: str, external_id: str, note_id: UUID | str) -> str:
    """Return what people are shown of a note: its title, else its external id, else its id."""
    return title.strip() or external_id.strip() or str(note_id)
