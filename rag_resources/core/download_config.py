"""How documents are downloaded."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class DownloadConfig(BaseModel):
    """Limits of downloads.

    Attributes:
        parallel: Files that are downloaded at once.
        tries: Of each file; only what may pass is tried again.
        timeout_s: Longest wait for a server to connect or to go on sending.
        total_s: Longest time for one file.
        links: CSS selector of the links that are documents, on a page that lists them.
        most_links: Of an index page or sitemap; the others are left out, and said so.
        allow_private: Whether addresses of the own machine and of private networks may be asked.
        every_hours: How often the sensor looks at sources in the web.
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
