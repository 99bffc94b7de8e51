"""Errors over HTTP: their titles."""

import json
import re
from http import HTTPStatus
from pathlib import Path

import pytest

from rag_resources import api
from rag_resources.api.problems import ProblemError, problem_response

USED = {
    HTTPStatus[name]
    for path in Path(api.__file__).parent.rglob("*.py")
    for name in re.findall(r"HTTPStatus\.([A-Z_]+)", path.read_text("utf-8"))
}


@pytest.mark.parametrize("status", sorted(status for status in USED if status >= 400))
def test_every_title_is_in_the_readers_language(status: HTTPStatus) -> None:
    """That of every status that the API answers errors with."""
    titles = {
        json.loads(problem_response(ProblemError(status, ""), language=language).body)["title"]
        for language in ("es", "en", "fr")
    }
    assert len(titles) == 3
