"""What the terminal that serves the UI is spared."""

from rag_assets.webserver import without_news

HEAD = b"2026-11-24 21:46:59 +0000 - dagster - %s - ingest - a64ef7e8 - "


def test_news_of_runs_are_left_out_with_all_of_their_lines() -> None:
    colour, plain = b"\x1b[34m", b"\x1b[0m"
    warning = HEAD % (colour + b"WARNING" + plain) + b"secreto: tiene\n"
    told = [
        b"Serving on http://127.0.0.1:3000\n",
        warning,
        b"una contrase\xc3\xb1a.\n",
        HEAD % b"ERROR" + b"No se puede leer.\n",
        b"Traceback (most recent call last):\n",
    ]
    lines = [
        *told[:1],
        HEAD % b"DEBUG" + b"STEP_START - Started execution of step.\n",
        HEAD % b"INFO" + b"| Documento |\n",
        b"| --- |\n",
        *told[1:3],
        colour + b"2026-11-24 21:46:59 +0000" + plain + b" - dagster.daemon - INFO - Tick\n",
        *told[3:],
    ]
    assert list(without_news(lines)) == told


def test_a_failed_run_is_told_once_and_without_a_stack() -> None:
    """By the sensor; the page of the run has the rest."""
    sentence = b"2026-11-24 21:46:59 +0000 - dagster - ERROR - __repository__ - failed_runs - No.\n"
    lines = [
        HEAD % b"ERROR" + b"promote - STEP_FAILURE - Execution of step failed.\n",
        b"dagster._core.definitions.events.Failure: No.\n",
        b"Stack Trace:\n",
        HEAD % b"ERROR" + b"RUN_FAILURE - Execution of run failed.\n",
        b"Stack Trace:\n",
        sentence,
    ]
    assert list(without_news(lines)) == [sentence]


def test_the_end_of_a_process_is_not_told() -> None:
    """The webserver writes it in English when a person has pressed Ctrl+C."""
    assert list(without_news([b"\n", b"Aborted!\n"])) == [b"\n"]
