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
        links: CSS selector of the links that are documents, on a page that lists them.
        most_links: Most links of an index page or sitemap; the others are left out and reported.
        allow_private: Whether addresses of this machine and of private networks may be used.
        every_hours: How often the sensor checks sources on the web.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    parallel: Annotated[int, Field(ge=1, le=16)] = 3
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    total_s: Annotated[float, Field(gt=0, le=86_400)] = 600.0
    links: Annotated[str, Field(min_length=1, max_length=1_000)] = "a[href]"
    most_links: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    allow_private: bool = False
    every_hours: Annotated[float, Field(gt=0, le=8_760)] = 24.0
