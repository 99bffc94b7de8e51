"""A real model migration on the sample, from USE to multilingual-e5-small, under load.

    python -m tests.benchmarks.show_model_migration

In a RAG_HOME of its own, by the jobs of the code location on a real Dagster instance. One process
asks the golden questions by whatever serves, from the first promotion to the end. Takes some
minutes of CPU. Compare the counts, not the times.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rag_resources.application import Application, open_application
from rag_resources.core.metrics import percentile
from rag_resources.core.types import RetrievalResponse
from rag_resources.settings import SAMPLE, load_settings
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.promotions import promote
from tests.benchmarks.dagster_jobs import Dagster

OLD, NEW = "use_multilingual", "e5_small"
OLD_CONFIGURATION, NEW_CONFIGURATION = "hybrid_use", "hybrid_weighted"
BATCH_MONTHS = 6
PAUSE_S = 0.05
LISTEN_S = 10.0

write = sys.stdout.write


@dataclass
class Client:
    """Asks one golden question after the other by what serves, and counts by phase."""

    application: Application
    questions: Sequence[str]
    phase: str = ""
    errors: Counter[str] = field(default_factory=Counter)
    answers: dict[str, list[RetrievalResponse]] = field(default_factory=dict)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Ask until told to stop."""
        for question in itertools.cycle(self.questions):
            if self.stopped.wait(PAUSE_S):
                return
            phase = self.phase
            try:
                response = self.application.retrieve(question).response
            except Exception:  # noqa: BLE001 -- whatever it is, it is what this looks for
                self.errors[phase] += 1
                continue
            self.answers.setdefault(phase, []).append(response)

    def row(self, phase: str) -> str:
        """Return the counts of a phase, as a row of the table."""
        answers = self.answers.get(phase, [])
        errors = self.errors[phase] + sum(bool(answer.error) for answer in answers)
        empty = sum(not answer.results for answer in answers)
        degraded = sum(bool(answer.degraded or answer.messages) for answer in answers)
        cached = sum(answer.cached for answer in answers)
        searched = [answer.latency_ms for answer in answers if not answer.cached]
        latency = "–"
        if searched:
            latency = f"{percentile(searched, 0.5):.0f}/{percentile(searched, 0.95):.0f}"
        models = Counter(answer.model for answer in answers)
        served = ", ".join(f"{model} {count}" for model, count in models.items())
        return (
            f"| {phase} | {len(answers) + self.errors[phase]} | {errors} | {empty} | {degraded} "
            f"| {cached} | {latency} | {served} |\n"
        )


def show(home: Path) -> None:
    """Do the whole migration and print what the client saw."""
    environment = {"RAG_HOME": str(home), "DATABASE_URL": "", "DAGSTER_PG_URL": ""}
    os.environ.update(environment)
    dagster = Dagster(environment)
    alone = {"EMBEDDING_MODELS": OLD, "NOTE_EMBEDDING_MODEL": OLD}
    both = {"EMBEDDING_MODELS": f"{OLD},{NEW}", "NOTE_EMBEDDING_MODEL": NEW}
    after = {"EMBEDDING_MODELS": NEW, "NOTE_EMBEDDING_MODEL": NEW}

    every = [0, None]
    dagster.done("ingest", changes=alone, months=every)
    dagster.done("golden", changes=alone)
    dagster.done("index", changes=alone, months=every)
    evaluation = ["evaluation_results", OLD_CONFIGURATION]
    dagster.done("evaluate", changes=alone, assets=[evaluation])

    entries = json.loads((SAMPLE / "golden.json").read_text("utf-8"))["entries"]
    with open_application(load_settings(note_embedding_model=NEW)) as application:
        serve_old(application)
        client = Client(application, [entry["query"] for entry in entries])
        asking = threading.Thread(target=client.run)
        try:
            phases = migrate(dagster, client, both, after, asking)
        finally:
            client.stopped.set()
        asking.join()
        write(
            "\n| phase | questions | errors | empty | degraded | cached | p50/p95 ms searched"
            " | served by |\n|---|---|---|---|---|---|---|---|\n"
        )
        for phase in phases:
            write(client.row(phase))
        with application.database.transaction() as connection:
            for name in (OLD_CONFIGURATION, NEW_CONFIGURATION):
                found = latest_evaluation(connection, name)
                if found:
                    write(f"{name}: Hit_Rate@10 {found.hit_rate_at_10:.3f}\n")


def serve_old(application: Application) -> None:
    """Let the old model serve without a passed gate, because USE fails it on this sample."""
    config = application.configuration(OLD_CONFIGURATION).retrieval
    with application.database.transaction() as connection:
        evaluation = latest_evaluation(connection, OLD_CONFIGURATION)
        if evaluation is None:
            raise SystemExit(f"{OLD_CONFIGURATION}: not evaluated")
        promote(connection, evaluation, config, run_id=None)


def migrate(
    dagster: Dagster,
    client: Client,
    both: Mapping[str, str],
    after: Mapping[str, str],
    asking: threading.Thread,
) -> list[str]:
    """Take the steps of a migration while a client asks.

    Args:
        dagster: Of the home.
        client: Not asking yet.
        both: Settings with both models.
        after: Settings with the new one alone.
        asking: Runs the client.

    Returns:
        The names of the phases, in order.
    """
    phases: list[str] = []

    def enter(phase: str) -> None:
        phases.append(phase)
        client.phase = phase
        write(f"{phase}\n")
        sys.stdout.flush()

    enter("old model serves")
    asking.start()
    client.stopped.wait(LISTEN_S)
    enter("backfill of the new one")
    dagster.done("ingest", changes=both, months=[0, None], assets=[["note_embeddings"]])
    for end in range(0, -25, -BATCH_MONTHS):
        months = [end - BATCH_MONTHS, end or None]
        dagster.done("index", changes=both, months=months, assets=[["embeddings", NEW]])
    enter("evaluation of both")
    names = (OLD_CONFIGURATION, NEW_CONFIGURATION)
    dagster.done("evaluate", changes=both, assets=[["evaluation_results", name] for name in names])
    enter("promotion")
    chosen = {"ops": {"promoted_config": {"config": {"configuration": NEW_CONFIGURATION}}}}
    dagster.done("promote", changes=both, run_config=chosen)
    enter("new model serves")
    client.stopped.wait(LISTEN_S)
    enter("retirement")
    config = {"model": OLD, "confirm": OLD}
    retire = {"ops": {"retire_embedding_model": {"config": config}}}
    write(f"refused: {dagster.run('retire_model', changes=both, run_config=retire)}\n")
    dagster.done("retire_model", changes=after, run_config=retire)
    enter("old model gone")
    client.stopped.wait(LISTEN_S)
    return phases


def main() -> None:
    """Show it."""
    with tempfile.TemporaryDirectory(prefix="rag-migration-") as folder:
        home = Path(folder)
        home.chmod(0o755)
        try:
            show(home)
        finally:
            # Before its data goes.
            subprocess.run([Path(sys.executable).with_name("rag"), "down"], check=False)


if __name__ == "__main__":
    main()
