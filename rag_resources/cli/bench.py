"""`rag bench`: measures configurations on a public question set."""

from pathlib import Path
from typing import Annotated

import typer

from rag_resources.cli.experiment import show_experiment
from rag_resources.cli.output import (
    JsonOption,
    note,
    progress,
    say,
    show_table,
    working,
    write_json,
)
from rag_resources.cli.session import read_settings
from rag_resources.languages.messages import _


def bench(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="CONJUNTO",
            help=_("A JSON file in the form of SQuAD, or a folder in that of BEIR or TREC."),
        ),
    ],
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="NOMBRE",
            help=_("A configuration; may be repeated. The first is compared with the others."),
        ),
    ] = None,
    paragraphs: Annotated[
        list[int] | None,
        typer.Option(
            "--paragraphs",
            metavar="N",
            min=1,
            help=_("Paragraphs of SQuAD that make a note; may be repeated. By default 1."),
        ),
    ] = None,
    questions: Annotated[
        int | None,
        typer.Option("--questions", metavar="N", min=1, help=_("How many are drawn; else all.")),
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(
            "--run",
            metavar="FICHERO",
            help=_("What another system found, in TREC's form, to compare with; may be repeated."),
        ),
    ] = None,
    write_runs: Annotated[
        Path | None,
        typer.Option(
            "--write-runs",
            metavar="CARPETA",
            help=_("Where to write what each configuration found, in TREC's form."),
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown", metavar="FICHERO.md", help=_("Writes the tables to a file, too.")
        ),
    ] = None,
    weights: Annotated[
        bool,
        typer.Option("--weights", help=_("Tries other weights of the first one, too.")),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure configurations on a set, in a database of its own on the embedded server."""
    from rag_resources.configurations import DEFAULT_CONFIGURATION, load_configurations
    from rag_resources.core.tables import markdown_table
    from rag_resources.database.locate import embedded_server
    from rag_resources.evaluation.bench import Bench, interval, mean, published_figures, tables_of
    from rag_resources.evaluation.question_sets import read_question_set, read_run, run_lines
    from rag_resources.files import LocalFiles

    settings = read_settings()
    sizes = paragraphs or [1]
    sets = {
        size: read_question_set(path, paragraphs_per_note=size, questions=questions)
        for size in sizes
    }
    runs = {size: {own.stem: read_run(own, sets[size]) for own in run or ()} for size in sizes}
    known = load_configurations(settings.configuration_folders)
    configurations = {name: known.named(name) for name in config or [DEFAULT_CONFIGURATION]}
    server = embedded_server(settings)
    with working(_("Opening the database…")):
        server.up()
    made = Bench(settings, server, configurations, progress)
    results = {size: made.measure(dataset, runs[size]) for size, dataset in sets.items()}
    tables = [
        table
        for size, result in results.items()
        for table in tables_of(
            result,
            _("{name}, paragraphs per note: {size}").format(name=path.name, size=size)
            if path.is_file()
            else path.name,
            published_figures(path, size) if questions is None else {},
        )
    ]
    for size, result in results.items() if write_runs else ():
        for name, own in result.measured.items():
            if write_runs and own.found:
                file = f"{path.stem}.{size}.{name}.run"
                lines = "".join(run_lines(own.found, name))
                LocalFiles(write_runs.absolute()).write(file, lines.encode())
    if markdown:
        text = "".join(
            f"### {each.title}\n\n{markdown_table(each.columns, each.rows)}\n\n" for each in tables
        )
        LocalFiles(markdown.absolute().parent).write(markdown.name, text.encode())
    if as_json:
        write_json(
            [
                {
                    "paragraphs": size,
                    "notes": result.notes,
                    "chunks": result.chunks,
                    "questions": result.questions,
                    "measured": [
                        {
                            "name": name,
                            "model": own.model,
                            "p50Ms": own.p50_ms,
                            "metrics": {
                                metric: {
                                    "mean": mean(own.per_query, metric),
                                    "interval": interval(own.per_query, metric),
                                }
                                for metric in ("hit_rate_at_10", "mrr", "ndcg_at_10")
                            },
                        }
                        for name, own in result.measured.items()
                    ],
                }
                for size, result in results.items()
            ]
        )
        return
    for table in tables:
        show_table(table)
    say(
        _(
            "Intervals of 95 %: Wilson's for hits, BCa bootstrap for means; p after Holm's "
            "correction. p50 leaves out embedding the question."
        )
    )
    for dataset in sets.values() if weights else ():
        show_experiment(*made.weigh(dataset))
    if write_runs:
        note(_("Runs written to {path}.").format(path=write_runs))
