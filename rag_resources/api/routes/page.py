"""`/`: the web page for questions, and its files. Nothing is inline or from another server.

The page is a client of the API like any other: it gets the notes from there, with the key that its
reader entered.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from rag_resources.api.language import preferred_language
from rag_resources.api.problems import ProblemError
from rag_resources.core.golden import CATEGORIES, DIFFICULTIES
from rag_resources.core.query import MAX_QUERY_CHARS
from rag_resources.core.quoting import shown
from rag_resources.languages.files import LANGUAGES
from rag_resources.languages.messages import _, render
from rag_resources.packaged import packaged

router = APIRouter(include_in_schema=False)

FOLDER = "page"
_TYPES = {
    "page.css": "text/css",
    "favicon.svg": "image/svg+xml",
    **dict.fromkeys(
        (
            *("page.js", "api.js", "documents.js", "filters.js", "golden.js", "history.js"),
            *("key.js", "markdown.js", "source.js", "turn.js", "words.js", "markdown-it.min.mjs"),
        ),
        "text/javascript",
    ),
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
    "factual": _("a fact"),
    "causal": _("a cause"),
    "temporal": _("a time"),
    "comparative": _("a comparison"),
    "multi-part": _("several parts"),
}


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
        message = _("{path} does not exist. What there is can be seen at /docs.").format(
            path=shown(request.url.path)
        )
        raise ProblemError(HTTPStatus.NOT_FOUND, message)
    content = _content(name)
    headers = {**HEADERS, "ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, media_type=_TYPES[name], headers=headers)


@cache
def _content(name: str) -> bytes:
    return packaged("rag_resources", "api", FOLDER, name).read_bytes()


def _of_scripts() -> Iterator[str]:
    """Yield the English sentences that the scripts say."""
    for name in _TYPES:
        if name.endswith(".js"):
            script = _content(name).decode()
            yield from (
                json.loads(each) for each in re.findall(r'\b_\(("(?:[^"\\]|\\.)*")', script)
            )


@cache
def _page(language: str) -> str:
    def said(msgid: str) -> str:
        return render(_(msgid), language)

    environment = Environment(
        loader=PackageLoader("rag_resources.api", FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        _=said,
        words=json.dumps({each: said(each) for each in _of_scripts()}, ensure_ascii=False),
        language=language,
        languages=_LANGUAGE_NAMES,
        longest=MAX_QUERY_CHARS,
        categories=[(name, render(_CATEGORY_NAMES[name], language)) for name in CATEGORIES],
        difficulties=list(DIFFICULTIES),
    )
