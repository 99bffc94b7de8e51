"""Limits for reading documents."""

from pydantic import BaseModel, ConfigDict, Field


class ExtractionConfig(BaseModel):
    """Limits for reading one document.

    Attributes:
        timeout_s: Longest time to read a document, in seconds.
        memory_mb: Most memory of the process that reads it (its address space).
        pages: Most pages read.
        file_mb: Largest file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout_s: float = Field(300.0, gt=0, le=550)
    memory_mb: int = Field(1_024, ge=64, le=65_536)
    pages: int = Field(5_000, ge=1, le=1_000_000)
    file_mb: int = Field(100, ge=1, le=1_024)
