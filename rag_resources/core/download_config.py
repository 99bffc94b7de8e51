"""How documents are downloaded."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class DownloadConfig(BaseModel):
    """Limits of downloads.

    Attributes:
        parallel: Files that are downloaded at once.
        tries: Attempts per file; only transient errors are retried.
        timeout_s: Longest wait for a server to connect or to send more.
        total_s: Longest time for one file.
        allow_private: Whether addresses of this machine and of private networks may be used.
        every_hours: How often the sensor checks sources on the web.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    parallel: Annotated[int, Field(ge=1, le=16)] = 3
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    total_s: Annotated[float, Field(gt=0, le=86_400)] = 600.0
    allow_private: bool = False
    every_hours: Annotated[float, Field(gt=0, le=8_760)] = 24.0
