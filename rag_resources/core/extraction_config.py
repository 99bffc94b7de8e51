"""Limits for reading documents: those of the child process, and how much a new reading may lose."""

from pydantic import BaseModel, ConfigDict, Field


class ExtractionConfig(BaseModel):
    """Limits for reading one document, and the gate of a re-extraction.

    Attributes:
        timeout_s: Longest time to read a document, in seconds.
        memory_mb: Most memory of the process that reads it (its address space).
        pages: Most pages read.
        output_mb: Most text, words and positions that a document may give.
        file_mb: Largest file.
        parallel: How many documents are read at once.
        lost_words: Largest share of a document's words that a new reader may lose; with more, its
            pages replace nothing until a person accepts them.
        lost_citations: The same for the share of its passages whose text is no longer found.
        verified: Smallest share of the passages whose place in the file still has their text.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout_s: float = Field(300.0, gt=0, le=550)
    memory_mb: int = Field(1_024, ge=64, le=65_536)
    pages: int = Field(5_000, ge=1, le=1_000_000)
    output_mb: int = Field(256, ge=1, le=4_096)
    file_mb: int = Field(100, ge=1, le=1_024)
    parallel: int = Field(2, ge=1, le=16)
    lost_words: float = Field(0.02, ge=0, le=1)
    lost_citations: float = Field(0.02, ge=0, le=1)
    verified: float = Field(0.998, ge=0, le=1)
