"""Opens PDF files, and says why one cannot be opened."""

from typing import BinaryIO

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.messages import Message


def open_pdf(file: BinaryIO) -> pdfium.PdfDocument:
    """Open a PDF file.

    Raises:
        InvalidSourceError: The file is encrypted, damaged, has no pages, or is not a PDF.
    """
    try:
        document = pdfium.PdfDocument(file)
    except pdfium.PdfiumError as error:
        encrypted = getattr(error, "err_code", None) == pdfium_c.FPDF_ERR_PASSWORD
        message = Message.PDF_ENCRYPTED if encrypted else Message.PDF_DAMAGED
        raise InvalidSourceError(message) from error
    if not len(document):
        document.close()
        raise InvalidSourceError(Message.PDF_EMPTY)
    return document
