"""The assets of documents over a folder with a good, an encrypted, a damaged and a scanned file."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster_project import by_field
from reportlab.lib.pdfencrypt import StandardEncryption

from rag_assets.assets.documents import build_document_pages_asset, build_documents_asset
from rag_assets.assets.notes import build_notes_asset
from rag_assets.checks import document_errors, extraction_loss
from rag_resources.documents.readers import reader_of
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.settings import Settings, load_settings
from tests.command_line import isolate
from tests.pdf_files import PROSE, draw_lines, pdf_of, wrapped

pytestmark = pytest.mark.filterwarnings("ignore:.*backfill_policy:dagster.BetaWarning")

MONTH = f"{datetime.now(tz=UTC):%Y-%m-01}"


@pytest.fixture
def settings(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Of a database of its own and a folder of four documents."""
    folder = tmp_path / "docs"
    folder.mkdir()

    def page(canvas: object) -> None:
        draw_lines(canvas, wrapped(PROSE, 80), 60, 80)

    locked = StandardEncryption("secreto", canPrint=0)
    (folder / "plan.pdf").write_bytes(pdf_of(page, page).getvalue())
    (folder / "cifrado.pdf").write_bytes(pdf_of(page, encrypt=locked).getvalue())
    (folder / "roto.pdf").write_bytes(b"%PDF-1.7\nnada")
    (folder / "escaneado.pdf").write_bytes(
        pdf_of(lambda canvas: canvas.rect(50, 50, 300, 300, fill=1)).getvalue()
    )
    isolate(
        monkeypatch,
        tmp_path,
        DATABASE_URL=database_url,
        FILES_URL=(tmp_path / "files").as_uri(),
        DOCUMENTS_SOURCE=str(folder),
        FIRST_MONTH=MONTH[:7],
    )
    return load_settings()


def materialize(settings: Settings) -> dg.ExecuteInProcessResult:
    """Materialise this month of documents, pages and notes, with their checks."""
    assets = [
        build_documents_asset(settings),
        build_document_pages_asset(settings),
        build_notes_asset(settings),
        extraction_loss,
        document_errors,
    ]
    return dg.materialize(
        assets,
        partition_key=MONTH,
        resources={"rag": RagResource(settings=settings)},
        raise_on_error=False,
    )


def metadata(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, object]:
    """The metadata of an asset's month."""
    (event,) = result.asset_materializations_for_node(asset)
    return by_field(event.metadata)


def loss_of(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    """The verdict on what new readings lose."""
    (found,) = (
        each
        for each in result.get_asset_check_evaluations()
        if each.check_name == "extraction_loss"
    )
    return found


def test_bad_files_are_told_and_the_good_one_becomes_notes(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = materialize(settings)
    assert result.success
    assert metadata(result, "documents")["documents"] == 4
    read = metadata(result, "document_pages")
    assert (read["read"], read["pages"], read["failed_documents"]) == (4, 3, 2)
    problems = str(read["problems"])
    assert "cifrado" in problems
    assert "roto" in problems
    state = str(read["by_document"])
    assert "| con fallo | 0 |" in state
    assert metadata(result, "notes")["sections_inserted"] == 1
    # Both pages of the plan are the same.
    plotted = metadata(result, "notes")
    quality = plotted["page_quality_mean"]
    assert isinstance(quality, float)
    assert 0.3 < quality <= 1
    for quantile in ("p10", "p50", "p90"):
        assert plotted[f"page_quality_{quantile}"] == pytest.approx(quality)
    assert plotted["pages_of_low_quality"] == 0
    checks = {each.check_name: each for each in result.get_asset_check_evaluations()}
    assert checks["extraction_loss"].passed
    assert not checks["document_errors"].passed
    errors = by_field(checks["document_errors"].metadata)
    assert errors["failed_documents"] == 2
    assert errors["failed_documents_" + _("reading")] == 2
    assert "falla en: leyendo" in str(checks["document_errors"].description)
    again = materialize(settings)
    assert metadata(again, "document_pages")["read"] == 0
    assert "sections_inserted" not in metadata(again, "notes")
    assert metadata(again, "notes")["page_quality_mean"] == quality

    # A later reader that gets one page only.
    monkeypatch.setattr(reader_of("application/pdf"), "reader_hash", "later")
    monkeypatch.setenv("EXTRACTION__PAGES", "1")
    notes = tmp_path / "notas"
    notes.mkdir()
    (notes / "diario.md").write_text("Una nota que no es de ningún documento.", "utf-8")
    monkeypatch.setenv("NOTES_SOURCE", str(notes))
    held = materialize(load_settings())
    assert not held.success
    assert metadata(held, "document_pages")["held"] == 1
    assert held.asset_materializations_for_node("notes") == []
    assert "plan" in str(loss_of(held).description)
    # The next run writes the notes of the month; the document stays as it was.
    after = materialize(load_settings())
    assert after.success
    assert not loss_of(after).passed
    assert loss_of(after).severity == dg.AssetCheckSeverity.WARN
    assert metadata(after, "notes")["inserted"] == 1
    assert metadata(after, "notes")["sections_deleted"] == 0
