"""The body of `GET /v1/models`."""

import json

import pytest

from vsr.engine.model_list import render_model_list
from vsr.resources.cluster import Cluster
from vsr.resources.route import Route
from vsr.resources.snapshot import Settings, Snapshot

ALPHA = Cluster("alpha", (), "alpha")


def shown(*routes: Route, settings: Settings | None = None) -> list[dict[str, object]]:
    """Return the entries of a configuration with one cluster."""
    snapshot = Snapshot("", clusters=(ALPHA,), routes=routes, settings=settings or Settings())
    rendered = json.loads(render_model_list(snapshot, created=7))
    assert list(rendered) == ["object", "data"]
    data: list[dict[str, object]] = rendered["data"]
    return data


def test_builtin_name_comes_with_its_route() -> None:
    """Members and their order as recorded."""
    [entry] = shown(Route("vllm-sr/auto", "default"), Route("auto", "default", is_listed=False))

    assert json.dumps(entry) == json.dumps(
        {
            "id": "vllm-sr/auto",
            "object": "model",
            "created": 7,
            "owned_by": "vllm-semantic-router",
            "description": "Entrypoint for the default routing recipe",
            "routing": {
                "api": "chat",
                "source": "builtin",
                "resolution": "virtual",
                "selectable": True,
                "default_route": True,
                "recipe": "default",
            },
        }
    )


def test_authored_entrypoint_is_no_default_route() -> None:
    """It has its own description where there is one."""
    [entry] = shown(Route("mine", "support", description="Help", is_builtin=False))

    assert entry["description"] == "Help"
    assert entry["routing"] == {
        "api": "chat",
        "source": "explicit",
        "resolution": "virtual",
        "selectable": True,
        "recipe": "support",
    }


@pytest.mark.parametrize(("lists", "ids"), [(False, ["auto"]), (True, ["auto", "alpha"])])
def test_configured_models_are_listed_on_request(lists: bool, ids: list[str]) -> None:  # noqa: FBT001  # a parameter of the table
    """Behind the published names, and not selectable as a recipe is."""
    entries = shown(Route("auto", "default"), settings=Settings(list_configured_models=lists))

    assert [entry["id"] for entry in entries] == ids
    if lists:
        assert entries[1]["routing"] == {"resolution": "passthrough", "selectable": False}
        assert entries[1]["owned_by"] == "upstream-endpoint"
