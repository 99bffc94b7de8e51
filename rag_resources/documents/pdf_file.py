"""Opens PDF files; the error says why one cannot be opened."""

from typing import BinaryIO

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from rag_resources.core.errors import InvalidSourceError
from rag_resources.documents.archives import damaged
from rag_resources.languages.messages import _


def open_pdf(file: BinaryIO) -> pdfium.PdfDocument:
    """Open a PDF file.

    Raises:
        InvalidSourceError: The file is encrypted, damaged, has no pages, or is not a PDF.
    """
    try:
        document = pdfium.PdfDocument(file)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium_c.FPDF_ERR_PASSWORD:
            raise InvalidSourceError(
                _("The file is protected by a password. Save a copy without it.")
            ) from error
        raise damaged("PDF", error) from error
    if not len(document):
        document.close()
        raise InvalidSourceError(_("The PDF has no pages."))
    return document
