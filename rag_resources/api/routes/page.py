"""`/`: the web page for questions, and its files. Nothing is inline or from another server.

The page is a client of the API like any other: it gets the notes from there, with the key that its
reader entered.
"""

import hashlib
import json
from functools import cache
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from rag_resources.api.language import preferred_language
from rag_resources.api.problems import ProblemError
from rag_resources.core.golden import CATEGORIES, DIFFICULTIES
from rag_resources.core.messages import Message
from rag_resources.core.query import MAX_QUERY_CHARS
from rag_resources.core.quoting import shown
from rag_resources.languages.files import LANGUAGES
from rag_resources.languages.messages import wording
from rag_resources.packaged import packaged

router = APIRouter(include_in_schema=False)

FOLDER = "page"
_TYPES = {
    "page.css": "text/css",
    "favicon.svg": "image/svg+xml",
    **dict.fromkeys(
        ("page.js", "api.js", "filters.js", "golden.js", "key.js", "source.js", "turn.js"),
        "text/javascript",
    ),
    "words.js": "text/javascript",
}
"""The files that are served, by name."""

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_LANGUAGE_NAMES = {"es": "Español", "fr": "Français", "en": "English"}
_CATEGORY_NAMES = {
    "factual": "CATEGORY_FACTUAL",
    "causal": "CATEGORY_CAUSAL",
    "temporal": "CATEGORY_TEMPORAL",
    "comparative": "CATEGORY_COMPARATIVE",
    "multi-part": "CATEGORY_MULTI_PART",
}
_OF_SCRIPTS = ("PAGE_", "PLACE_", "ANSWER_SOURCES", "ANSWER_UNSUPPORTED_MARK", "ASKED_CARRIED")
"""Prefixes of the message codes whose wording is given to the scripts."""


@router.get("/")
async def page(request: Request, lang: Annotated[str, Query(max_length=10)] = "") -> HTMLResponse:
    """Show the page in the reader's language, or in the one that `lang` names."""
    default = request.app.state.settings.answer_language
    accepted = request.headers.get("accept-language", "")
    language = lang if lang in LANGUAGES else preferred_language(accepted, default=default)
    return HTMLResponse(_page(language), headers={**HEADERS, "Vary": "Accept-Language"})


@router.get("/static/{name}")
async def static(request: Request, name: str) -> Response:
    """Send a file of the page."""
    if name not in _TYPES:
        message = Message.API_NOT_FOUND.format(path=shown(request.url.path))
        raise ProblemError(HTTPStatus.NOT_FOUND, message)
    content = _content(name)
    headers = {**HEADERS, "ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, media_type=_TYPES[name], headers=headers)


@cache
def _content(name: str) -> bytes:
    return packaged("rag_resources", "api", FOLDER, name).read_bytes()


@cache
def _page(language: str) -> str:
    words = {**wording(LANGUAGES[0]), **wording(language)}
    own = {code: words[code] for code in words if code.startswith(_OF_SCRIPTS)}
    environment = Environment(
        loader=PackageLoader("rag_resources.api", FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        t=words,
        words=json.dumps(own, ensure_ascii=False),
        language=language,
        languages=_LANGUAGE_NAMES,
        longest=MAX_QUERY_CHARS,
        categories=[(name, _CATEGORY_NAMES[name]) for name in CATEGORIES],
        difficulties=list(DIFFICULTIES),
    )
