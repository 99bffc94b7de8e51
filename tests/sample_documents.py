"""Writes the sample's documents: `python -m tests.sample_documents`. Their content is invented.

A plan with columns and a table, a scanned page, minutes, accounts by month, a page and a list.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from reportlab.lib.utils import ImageReader

from rag_resources.settings import SAMPLE
from tests.office_files import archive, docx_parts, paragraph, rows, xlsx_parts
from tests.pdf_files import HEIGHT, draw_lines, pdf_of, wrapped

FOLDER = SAMPLE / "documents"

LEFT = (
    "El barrio de La Alameda tendrá dos líneas de autobús más. La línea 7 unirá el mercado con el "
    "hospital cada doce minutos, y la línea 9 llegará hasta la estación de cercanías los días "
    "laborables. El coste anual de las dos líneas es de 412.000 euros, que paga la tasa de "
    "aparcamiento del centro."
)
RIGHT = (
    "La biblioteca de la calle Olmo abrirá también los sábados por la tarde desde septiembre. El "
    "edificio de la antigua lonja se arreglará para el archivo municipal: las obras empiezan en "
    "marzo y duran catorce meses. La plaza de la Fuente tendrá veintidós árboles nuevos, todos "
    "almeces, que dan sombra y piden poca agua."
)
INVESTMENTS = [
    ("Obra", "Euros", "Termina"),
    ("Archivo en la lonja", "1.250.000", "mayo de 2026"),
    ("Carril bici del río", "380.000", "octubre de 2025"),
    ("Arbolado de la plaza", "46.500", "febrero de 2025"),
]
MINUTES = [
    ("Acta de la comunidad de la calle Olmo, 14", "Heading1"),
    ("Ascensor", "Heading2"),
    (
        "Se aprueba cambiar el motor del ascensor por 18.400 euros, con nueve votos a favor y dos "
        "en contra. La empresa Elevadores Turia da cinco años de garantía.",
        "",
    ),
    ("Fachada", "Heading2"),
    (
        "El arquitecto Vicent Roca dice que la cornisa del tercero está suelta. Se pone una red "
        "antes del 20 de noviembre y se piden tres presupuestos para la primavera.",
        "",
    ),
]
MONTHS = [("2025-01", 1840), ("2025-02", 2116), ("2025-03", 1904), ("2025-04", 2380)]
WEB = """<!doctype html>
<html lang="es"><head><title>Huertos urbanos</title></head><body>
<nav><a href="/">Inicio</a></nav>
<h1>Huertos urbanos</h1>
<h2>Cómo pedir una parcela</h2>
<p>Las solicitudes se entregan en el centro cívico del 3 al 21 de febrero. Cada parcela mide
cuarenta metros cuadrados y cuesta 35 euros al año, agua incluida.</p>
<h2>Qué no se puede hacer</h2>
<ul><li>Quemar restos: se llevan al compostador.</li><li>Vender la cosecha.</li></ul>
</body></html>
"""
TOOLS = """herramienta;responsable;fianza
Desbrozadora;Amparo;60
Escalera de seis metros;Toni;25
Motobomba;Lucía;90
"""
SCANNED = "Recibo de la fianza: 90 euros por la motobomba."


def _plan(canvas: Any) -> None:
    canvas.setFont("Helvetica-Bold", 18)
    draw_lines(canvas, ["Plan de barrio de La Alameda"], 60, 70)
    canvas.setFont("Helvetica", 10)
    draw_lines(canvas, wrapped(LEFT, 42), 60, 110)
    draw_lines(canvas, wrapped(RIGHT, 42), 320, 110)


def _table(canvas: Any) -> None:
    canvas.setFont("Helvetica-Bold", 14)
    draw_lines(canvas, ["Inversiones"], 60, 70)
    canvas.setFont("Helvetica", 10)
    edges, top = (60, 250, 350, 480), 100
    for number, row in enumerate(INVESTMENTS):
        for left, cell in zip(edges, row, strict=False):
            draw_lines(canvas, [cell], left + 4, top + 14 + 20 * number)
    for line in range(len(INVESTMENTS) + 1):
        canvas.line(edges[0], HEIGHT - top - 20 * line, edges[-1], HEIGHT - top - 20 * line)
    for edge in edges:
        canvas.line(edge, HEIGHT - top, edge, HEIGHT - top - 20 * len(INVESTMENTS))


def _scanned(canvas: Any) -> None:
    image = Image.new("L", (900, 300), 255)
    ImageDraw.Draw(image).text((40, 120), SCANNED, fill=0, font_size=30)
    canvas.drawImage(ImageReader(image), 60, HEIGHT - 260, 450, 150)


def _accounts() -> io.BytesIO:
    data: Sequence[dict[str, str]] = [
        {"A1": "Mes", "B1": "Gasto de luz"},
        *(
            {f"A{line}": month, f"B{line}": f"={value}"}
            for line, (month, value) in enumerate(MONTHS, start=2)
        ),
    ]
    return archive(xlsx_parts(rows(*data)))


def sample_documents() -> dict[str, bytes]:
    """The sample's documents, by name."""
    body = "".join(paragraph(text, style) for text, style in MINUTES)
    return {
        "plan_2025.pdf": pdf_of(_plan, _table).getvalue(),
        "recibo_2025.pdf": pdf_of(_scanned).getvalue(),
        "acta_2024.docx": archive(docx_parts(body)).getvalue(),
        "cuentas_2025.xlsx": _accounts().getvalue(),
        "huertos_2025.html": WEB.encode(),
        "herramientas_2024.csv": TOOLS.encode(),
    }


def write_sample(folder: Path = FOLDER) -> None:
    """Write the documents into a folder."""
    folder.mkdir(exist_ok=True)
    for name, content in sample_documents().items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    write_sample()
