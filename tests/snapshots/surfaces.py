"""What the product shows without data: assets, checks, jobs, configurations, HTTP operations.

What it shows of the sample is in `tests.snapshots.sample`.
"""

from typing import Any

import dagster as dg

from rag_assets.definitions import build_defs
from rag_resources.api.app import build_app
from rag_resources.configurations import load_configurations
from rag_resources.settings import load_settings


def definitions() -> dict[str, Any]:
    """Return assets, checks, jobs, schedules and sensors of the code location."""
    defs = build_defs(load_settings())
    graph = defs.resolve_asset_graph()
    assets = {
        key.to_user_string(): {
            "group": graph.get(key).group_name,
            "after": sorted(parent.to_user_string() for parent in graph.get(key).parent_keys),
            "partitioned": graph.get(key).partitions_def is not None,
        }
        for key in graph.get_all_asset_keys()
    }
    checks = {
        f"{key.asset_key.to_user_string()}:{key.name}": (
            "blocks" if graph.get(key).blocking else "tells"
        )
        for key in graph.asset_check_keys
    }
    jobs = {job.name: _selected(job) for job in defs.resolve_all_job_defs() if job.name[0] != "_"}
    schedules = {
        each.name: [each.cron_schedule, each.job_name, each.default_status.value]
        for each in map(defs.resolve_schedule_def, _names(defs.schedules))
    }
    sensors = {
        each.name: each.default_status.value
        for each in map(defs.resolve_sensor_def, _names(defs.sensors))
    }
    return {
        "assets": assets,
        "checks": checks,
        "jobs": jobs,
        "schedules": schedules,
        "sensors": sensors,
    }


def configurations() -> dict[str, str]:
    """Return the hash of every configuration that is shipped."""
    found = load_configurations(load_settings().configuration_folders)
    return {name: item.retrieval.config_hash for name, item in found.items()}


def operations() -> dict[str, Any]:
    """Return the operations of the HTTP API, and the fields of its bodies."""
    schema = build_app(load_settings()).openapi()
    paths = {
        f"{method.upper()} {path}": {
            "parameters": [each["name"] for each in operation.get("parameters", [])],
            "body": _types(operation.get("requestBody", {})),
            "answers": {
                status: _types(answer)
                for status, answer in operation["responses"].items()
                if status[0] == "2"
            },
        }
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }
    bodies = {
        name: {
            field: ("required " if field in body.get("required", ()) else "") + _type(of)
            for field, of in body.get("properties", {}).items()
        }
        for name, body in schema["components"]["schemas"].items()
    }
    return {"operations": paths, "bodies": bodies}


CHEAP = {
    "definitions": definitions,
    "configurations": configurations,
    "operations": operations,
}


def _selected(job: dg.JobDefinition) -> list[str]:
    if job.asset_layer.selected_asset_keys:
        return sorted(key.to_user_string() for key in job.asset_layer.selected_asset_keys)
    return [f"op {node.name}" for node in job.nodes]


def _names(defined: Any) -> list[str]:
    return [each.name for each in defined or ()]


def _types(content: dict[str, Any]) -> str:
    media = content.get("content", {})
    return ", ".join(f"{name}: {_type(of.get('schema', {}))}" for name, of in media.items())


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if choices:
        return " | ".join(_type(each) for each in choices)
    if schema.get("type") == "array":
        return f"[{_type(schema.get('items', {}))}]"
    return str(schema.get("format") or schema.get("const") or schema.get("type", "any"))
