"""`deploy/`: what its files name exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_resources.settings import Settings

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text("utf-8"))
KUBERNETES = list(
    yaml.safe_load_all((DEPLOY / "kubernetes" / "brain-sync-rag.yaml").read_text("utf-8"))
)
OURS = {name: service for name, service in COMPOSE["services"].items() if "build" in service}
SETTINGS = {name.upper() for name in Settings.model_fields}


def test_every_setting_that_is_given_exists() -> None:
    given = {name for service in OURS.values() for name in service["environment"]}
    [settings] = [item["data"] for item in KUBERNETES if item["metadata"]["name"] == "rag-settings"]
    assert given | settings.keys() <= SETTINGS
    assert {"DATABASE_URL", "DAGSTER_PG_URL", "CELERY_BROKER_URL", "FILES_URL"} <= given


def test_compose_takes_no_password_from_the_file_and_publishes_on_loopback_only() -> None:
    text = (DEPLOY / "compose" / "compose.yaml").read_text("utf-8")
    assert re.findall(r"(?i)password: (?!\$\{)", text) == []
    for service in COMPOSE["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_the_services_depend_on_services_that_exist() -> None:
    for service in COMPOSE["services"].values():
        assert service.get("depends_on", {}).keys() <= COMPOSE["services"].keys()


@pytest.mark.parametrize("service", OURS.values(), ids=OURS.keys())
def test_files_that_are_mounted_exist(service: dict[str, Any]) -> None:
    folder = DEPLOY / "compose"
    for volume in service["volumes"]:
        source = volume.partition(":")[0]
        assert not source.startswith(".") or (folder / source).is_file()


def test_the_image_is_built_of_files_that_exist() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    sources = [
        name
        for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE)
        for name in line.split()[:-1]
    ]
    assert len(sources) > 5
    assert all((DEPLOY.parent / name).exists() for name in sources)
    assert re.search(r"^USER 10001$", text, re.MULTILINE)
