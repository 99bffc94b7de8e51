"""A running webserver and its daemon, queried by GraphQL like a browser."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
import httpx
import psutil

SELECTOR = {
    "repositoryLocationName": "brain_sync_rag",
    "repositoryName": "__repository__",
}


@dataclass(frozen=True)
class Ui:
    """A running webserver with its daemon."""

    url: str

    def ask(self, query: str, **values: Any) -> Any:
        """Ask GraphQL."""
        body = {"query": query, "variables": values}
        answer = httpx.post(f"{self.url}/graphql", json=body, timeout=60).json()
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def ticks(self, sensor: str) -> list[str]:
        """Return how the ticks of a sensor ended."""
        data = self.ask(
            """query($of: SensorSelector!) { sensorOrError(sensorSelector: $of) {
                 ... on Sensor { sensorState { ticks { status } } } } }""",
            of={**SELECTOR, "sensorName": sensor},
        )
        return [tick["status"] for tick in data["sensorOrError"]["sensorState"]["ticks"]]

    def repositories(self) -> list[dict[str, Any]]:
        """Return what the webserver loaded."""
        data = self.ask(
            """{ repositoriesOrError { ... on RepositoryConnection { nodes {
                   assetNodes { assetKey { path } }
                   sensors { name sensorState { status } } } } } }"""
        )
        return data["repositoriesOrError"].get("nodes", [])

    def switch_sensor(self, name: str, *, on: bool) -> None:
        """Switch a sensor on or off."""
        of = {**SELECTOR, "sensorName": name}
        if on:
            self.ask(
                """mutation($of: SensorSelector!) {
                     startSensor(sensorSelector: $of) { __typename } }""",
                of=of,
            )
            return
        data = self.ask(
            """query($of: SensorSelector!) { sensorOrError(sensorSelector: $of) {
                 ... on Sensor { sensorState { id } } } }""",
            of=of,
        )
        self.ask(
            "mutation($id: String!) { stopSensor(id: $id) { __typename } }",
            id=data["sensorOrError"]["sensorState"]["id"],
        )

    def stop_schedules(self) -> None:
        """Switch every schedule off, for whoever compares states over the hour of one."""
        data = self.ask(
            """query { repositoriesOrError { ... on RepositoryConnection { nodes {
                 schedules { scheduleState { id } } } } } }"""
        )
        for node in data["repositoriesOrError"]["nodes"]:
            for schedule in node["schedules"]:
                self.ask(
                    "mutation($id: String!) { stopRunningSchedule(id: $id) { __typename } }",
                    id=schedule["scheduleState"]["id"],
                )

    def launch_backfill(self, assets: Sequence[dg.AssetKey], months: Sequence[str]) -> str:
        """Backfill months of assets."""
        data = self.ask(
            """mutation($params: LaunchBackfillParams!) {
                 launchPartitionBackfill(backfillParams: $params) { __typename
                   ... on LaunchBackfillSuccess { backfillId }
                   ... on PythonError { message } } }""",
            params={
                "assetSelection": [{"path": list(key.path)} for key in assets],
                "partitionNames": list(months),
            },
        )
        return data["launchPartitionBackfill"]["backfillId"]

    def reexecute_from_failure(self, backfill: str) -> str:
        """Launch the backfill that the button "Re-execute from failure" of a backfill launches."""
        data = self.ask(
            """mutation($params: ReexecutionParams!) {
                 reexecutePartitionBackfill(reexecutionParams: $params) { __typename
                   ... on LaunchBackfillSuccess { backfillId }
                   ... on PythonError { message } } }""",
            params={"parentRunId": backfill, "strategy": "FROM_FAILURE"},
        )
        return data["reexecutePartitionBackfill"]["backfillId"]

    def backfill_status(self, backfill: str) -> str:
        """Return how far a backfill is."""
        data = self.ask(
            """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
                 ... on PartitionBackfill { status } } }""",
            id=backfill,
        )
        return data["partitionBackfillOrError"]["status"]

    def launch_job(self, name: str, config: Mapping[str, Any] | None = None) -> str:
        """Run a job."""
        data = self.ask(
            """mutation($params: ExecutionParams!) {
                 launchRun(executionParams: $params) { __typename
                   ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }""",
            params={"selector": {**SELECTOR, "jobName": name}, "runConfigData": config or {}},
        )
        return data["launchRun"]["run"]["runId"]

    def run_status(self, run: str) -> str:
        """Return how far a run is."""
        data = self.ask(
            "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }", id=run
        )
        return data["runOrError"]["status"]


def eventually(what: Callable[[], Any], seconds: float = 240) -> Any:
    """Return the first answer that is not empty."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if answer := what():
                return answer
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, what
        time.sleep(0.5)


def members(session: int) -> list[psutil.Process]:
    """Return the processes started by a command."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found
