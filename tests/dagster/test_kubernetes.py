"""The profile for Kubernetes: its manifests are valid, and its launcher speaks to an API server.

The API server is one of the tests' own that knows jobs; the client is Kubernetes' own.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import kubernetes_validate
import pytest
import yaml
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.launcher.base import LaunchRunContext, WorkerStatus
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster_project import Project, definitions

from rag_assets.instance import INSTANCE as DEFAULT
from rag_assets.runs.kubernetes_launcher import KubernetesRunLauncher
from rag_assets.runs.liveness import RUN_LOCK
from rag_resources.database.run_lock import RunLock

MANIFESTS = Path(__file__).parents[2] / "deploy" / "kubernetes" / "brain-sync-rag.yaml"
RESOURCES = [item for item in yaml.safe_load_all(MANIFESTS.read_text("utf-8")) if item]
INSTANCE = yaml.safe_load(
    next(r for r in RESOURCES if r["metadata"]["name"] == "rag-dagster")["data"]["dagster.yaml"]
)
VERSION = "1.31"


class ApiServer(ThreadingHTTPServer):
    """Keeps the jobs that are created, and says that all of them are active."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.jobs: dict[str, Any] = {}


class _Handler(BaseHTTPRequestHandler):
    server: ApiServer

    def do_POST(self) -> None:
        job = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.jobs[job["metadata"]["name"]] = job
        self._answer(201, job)

    def do_GET(self) -> None:
        name = self.path.removesuffix("/status").rpartition("/")[2]
        if name not in self.server.jobs:
            self._answer(404, {"kind": "Status", "code": 404, "message": "not found"})
            return
        self._answer(200, {**self.server.jobs[name], "status": {"active": 1}})

    def _answer(self, code: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """A running API server."""
    server = ApiServer()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def launcher(api: ApiServer, instance: dg.DagsterInstance, folder: Path) -> Iterator[Any]:
    """The launcher of the manifests, with another cluster."""
    access = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": {}}],
        "clusters": [
            {"name": "test", "cluster": {"server": f"http://127.0.0.1:{api.server_port}"}}
        ],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(access), "utf-8")
    given = INSTANCE["run_launcher"]["config"]
    made = KubernetesRunLauncher(
        **given, load_incluster_config=False, kubeconfig_file=str(folder / "kubeconfig")
    )
    made.register_instance(instance)
    yield made


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda item: item["metadata"]["name"])
def test_a_manifest_keeps_to_the_schema_of_kubernetes(resource: dict[str, Any]) -> None:
    kubernetes_validate.validate(resource, VERSION, strict=True)


def test_every_pod_runs_as_nobody_special_on_a_file_system_that_it_cannot_write() -> None:
    pods = [r["spec"]["template"]["spec"] for r in RESOURCES if r["kind"] in ("Deployment", "Job")]
    assert len(pods) == 3
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert not container["securityContext"]["allowPrivilegeEscalation"]


def test_its_instance_file_differs_from_the_default_where_it_has_to() -> None:
    default = yaml.safe_load(DEFAULT.read_text("utf-8"))
    changed = {key for key in default | INSTANCE if default.get(key) != INSTANCE.get(key)}
    assert changed == {"run_launcher", "run_retries", "run_monitoring", "concurrency"}


def test_a_run_is_a_job_and_lives_as_long_as_it_holds_its_lock(
    project: Project, api: ApiServer, tmp_path: Path
) -> None:
    """Also while the cluster still counts its pod as active, as it does when a machine is gone."""
    code = RepositoryPythonOrigin(
        sys.executable, ModuleCodePointer("rag_assets.definitions", "defs")
    )
    run = project.instance.create_run_for_job(
        definitions().resolve_job_def("ingest"), job_code_origin=JobPythonOrigin("ingest", code)
    )
    with launcher(api, project.instance, tmp_path) as kubernetes:
        kubernetes.launch_run(LaunchRunContext(run, workspace=None))
        [job] = api.jobs.values()
        kubernetes_validate.validate(job, VERSION, strict=True)
        [container] = job["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "brain-sync-rag"
        assert {"secretRef": {"name": "rag-secrets"}} in container["envFrom"]
        assert run.run_id in job["metadata"]["name"]

        def health() -> WorkerStatus:
            stored = project.instance.get_run_by_id(run.run_id)
            return kubernetes.check_run_worker_health(stored).status

        assert health() is WorkerStatus.RUNNING  # so says its job
        lock = RunLock(os.environ["DATABASE_URL"], run.run_id)
        project.instance.add_run_tags(run.run_id, {RUN_LOCK: run.run_id})
        assert health() is WorkerStatus.RUNNING
        lock.release()
        assert health() is WorkerStatus.NOT_FOUND
