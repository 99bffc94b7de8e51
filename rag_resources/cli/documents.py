"""`rag document …`: what is stored of documents, deleting, reviewing and verifying them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import (
    SHOWN,
    JsonOption,
    LimitOption,
    ReasonOption,
    YesOption,
    clean,
    conclude,
    picked,
    print_table,
    require_consent,
    say,
    show_list,
    warn,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.documents.review import ToReview
    from rag_resources.store.document_list import DocumentDetails, DocumentFailure, DocumentSummary

app = group("document", _("The documents: list, show, review, verify and delete them."))

Name = Annotated[
    str, typer.Argument(metavar="DOCUMENTO", help=_("Id, address or title of the document."))
]
OptionalName = Annotated[
    str | None, typer.Argument(metavar="DOCUMENTO", help=_("Id, address or title of the document."))
]
Page = Annotated[
    int | None, typer.Option("--page", metavar="N", help=_("One page, by its number."))
]


@command(app, "list", _("Shows the documents, the latest first."))
def list_documents(limit: LimitOption = None, as_json: JsonOption = False) -> None:
    """List the documents, latest arrival first."""
    with application() as opened:
        documents, total = opened.documents.list(limit=limit if as_json or limit else SHOWN)
    if as_json:
        write_json({"documents": [_json(each) for each in documents], "total": total})
        return
    columns = (_("Document"), _("State"), _("Pages"), _("Chunks"), _("Title"), _("Reason"))
    rows = [
        (
            each.address,
            _status(each),
            _pages(each),
            str(each.chunks),
            each.title,
            _failure(each.first_failure),
        )
        for each in documents
    ]
    show_list(columns, rows, total)


@command(app, "show", _("Shows what was read of a document or a page."))
def show(
    name: Name,
    page: Page = None,
    png: Annotated[
        Path | None,
        typer.Option("--png", metavar="FICHERO", help=_("Saves the page there as a picture.")),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the text that was read from a document, or from one of its pages."""
    from rag_resources.store.document_list import page_of

    if png is not None and page is None:
        raise InvalidParameterError(_("--png needs --page, the number of the page."))
    with application() as opened:
        document = opened.documents.find(name)
        details = opened.documents.details(document)
        read = None if page is None else page_of(details.pages, page).text
        if png is not None and page is not None:
            png.write_bytes(opened.documents.picture(document, page))
    if as_json:
        shown = _json(document) | _details_json(details)
        write_json(shown if read is None else shown | {"page": {"number": page, "text": read}})
        return
    if read is not None:
        say(read)
        return
    rows = [
        (_("Document"), document.address),
        (_("Id"), str(document.document_id)),
        (_("Title"), document.title),
        (_("State"), _status(document)),
        (_("Type"), document.media_type),
        (_("Pages"), _pages(document)),
        (_("Chunks"), str(document.chunks)),
        *((key, str(value)) for key, value in document.metadata.items()),
        *((_("Reason"), _failure(each)) for each in details.failures),
        *_concerns(document, details),
    ]
    print_table((_("Field"), _("Value")), rows, prose=True)


@command(app, "delete", _("Deletes a document with all that was made of it."))
def delete(
    name: Name, reason: ReasonOption = "", yes: YesOption = False, as_json: JsonOption = False
) -> None:
    """Delete a document and everything made of it, after confirmation by a person."""
    with application() as opened:
        document = opened.documents.find(name)
        question = _("Delete “{title}” and its notes ({notes})? (y/n)").format(
            title=document.title, notes=document.notes
        )
        require_consent(question, yes=yes)
        notes = opened.documents.delete(document, reason=clean(reason))
    message = _(
        "Deleted: “{title}”, with its notes ({notes}). Its source will not bring it again unless "
        "you say: rag document restore {address}"
    ).format(title=document.title, notes=notes, address=document.address)
    conclude(message, {"address": document.address, "deletedNotes": notes}, as_json=as_json)


@command(app, "restore", _("Lets the source bring a deleted document again."))
def restore(
    address: Annotated[
        str, typer.Argument(metavar="DIRECCIÓN", help=_("Address that the deleted document had."))
    ],
    as_json: JsonOption = False,
) -> None:
    """Let the source bring a deleted document back."""
    with application() as opened:
        if not opened.documents.restore(address):
            raise InvalidParameterError(
                _("No document with the address {address} was deleted.").format(address=address)
            )
    message = _("“rag run” brings {address} again, if the source still has it.").format(
        address=address
    )
    conclude(message, {"address": address, "restored": True}, as_json=as_json)


@command(app, "review", _("Shows the pages and new readings that wait for a decision, or decides."))
def review(
    name: OptionalName = None,
    page: Page = None,
    accept: Annotated[
        bool, typer.Option("--accept", help=_("Lets the page, or the new reading, be searched."))
    ] = False,
    drop: Annotated[
        bool, typer.Option("--drop", help=_("Drops the page or the new reading."))
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the pages and readings that wait for a decision, or decide one."""
    from rag_resources.documents.review import Decision

    if accept and drop:
        raise InvalidParameterError(_("Choose one: --accept or --drop."))
    if name is None and (accept or drop):
        raise InvalidParameterError(_("Name the document that you decide on."))
    with application() as opened:
        document = None if name is None else opened.documents.find(name)
        if document and (accept or drop):
            decision = Decision.ACCEPT if accept else Decision.DROP
            opened.documents.review(document, decision, page=page)
            conclude(_("Noted."), {"decision": decision}, as_json=as_json)
            return
        waiting = [
            each
            for each in opened.documents.reviews()
            if document is None or each.document.document_id == document.document_id
        ]
    if as_json:
        reviews = [
            picked(each, "page", "concern", "diff", quality_score="quality")
            | picked(each.document, "address", document="document_id")
            for each in waiting
        ]
        write_json({"waiting": reviews})
        return
    columns = (_("Document"), _("Page"), _("Reason"))
    rows = [(each.document.address, str(each.page or ""), _concern(each)) for each in waiting]
    if rows:
        print_table(columns, rows, prose=True)
    say(_("Waiting for a decision: {count}.").format(count=len(waiting)))


@command(app, "verify", _("Reads each passage at its place in the file again, and compares."))
def verify(name: OptionalName = None, as_json: JsonOption = False) -> None:
    """Look up every passage in its file again; exit code 1 if too few are found."""
    from rag_resources.documents.verification import Verified

    total = Verified()
    with application() as opened:
        documents = [opened.documents.find(name)] if name else opened.documents.list()[0]
        for document in documents:
            total.add(opened.documents.verify(document))
    if as_json:
        write_json(picked(total, "passages", "verified", "share", "unverified"))
    else:
        for each in total.unverified:
            warn(
                _("{document}: not at its place: “{text}”").format(
                    document=each.document, text=each.content[:200]
                )
            )
        say(total.in_words)
    if not total.is_enough:
        raise typer.Exit(1)


def _status(document: "DocumentSummary") -> str:
    from rag_resources.store.document_list import status_word

    word = status_word(document.status)
    return _("{status}, without its file").format(status=word) if document.is_missing else word


def _pages(document: "DocumentSummary") -> str:
    from rag_resources.store.document_list import pages_read

    return pages_read(document.pages, document.page_count)


def _failure(failure: "DocumentFailure | None") -> str:
    """Say why a document, or a page of it, could not be read; empty if nothing failed."""
    if failure is None or failure.page is None:
        return failure.reason if failure else ""
    return _("p. {page}").format(page=failure.page) + f": {failure.reason}"


def _concerns(document: "DocumentSummary", details: "DocumentDetails") -> list[tuple[str, str]]:
    """Return what waits for a decision: pages by number, and a new reading."""
    from rag_resources.documents.review import concerns_of

    return [
        (_("Page") + f" {each.page}" if each.page else _("Reason"), _concern(each))
        for each in concerns_of(document, details.pages, details.extractions)
    ]


def _concern(each: "ToReview") -> str:
    from rag_resources.documents.review import Concern

    if each.concern is Concern.HELD and each.diff:
        return _(
            "the new reading loses {words:.1%} of the words and {passages:.1%} of the passages"
        ).format(words=each.diff.lost_words, passages=each.diff.lost_citations)
    if each.concern is Concern.LOW_QUALITY:
        return _("text of low quality ({quality:.2f})").format(quality=each.quality)
    return _("no text: needs OCR")


def _json(document: "DocumentSummary") -> dict[str, Any]:
    return picked(
        document,
        *("source", "addresses", "title", "media_type", "metadata", "status", "arrived_at"),
        *("updated_at", "file_sha256", "file_bytes", "page_count", "needs_ocr", "low_quality"),
        *("failures", "notes", "chunks", "held"),
        id="document_id",
        pages_read="pages",
        word_count="words",
        quality_score="quality",
    ) | {"reason": _failure(document.first_failure) or None}


def _details_json(details: "DocumentDetails") -> dict[str, Any]:
    pages = [
        picked(
            stored.page,
            *("number", "sheet", "route", "word_count", "has_images", "has_tables"),
            *("has_multiple_columns", "left_out", "notices"),
            quality_score="quality",
        )
        | {"characterCount": len(stored.page.text), "removed": len(stored.page.removed)}
        | {"review": stored.review or None}
        for stored in details.pages
    ]
    readings = [
        picked(
            each,
            *("reader", "reader_hash", "state", "seconds", "diff"),
            pages="page_count",
            words="word_count",
            at="extracted_at",
        )
        | {"failure": each.failure or None}
        for each in details.extractions
    ]
    failures = [picked(each, "page", "stage", "reason") for each in details.failures]
    return {"pages": pages, "failureReasons": failures, "readings": readings}
