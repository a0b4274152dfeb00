"""The fault table through Envoy with the same settings: the same calls, the same status."""

from pathlib import Path
from typing import Any

import pytest
import trio
import yaml

from tests.demo.raw_client import ask, chat_body
from tests.e2e.test_fault_table import POLICIES, ROWS, fault_script, unreachable
from tests.e2e.test_http2 import start_envoy
from tests.fakes.backend import start_backend
from vsr.config.quantities import parse_duration_s
from vsr.network.epoll import EpollNetwork

_PATIENCE_S = 20
_WITHOUT_FALLBACK = [name for name in POLICIES if "fallback" not in POLICIES[name]]
_MANAGER = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3"
_ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
_HOSTS = "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"


@pytest.mark.slow
@pytest.mark.parametrize("policy", _WITHOUT_FALLBACK)
@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
async def test_envoy_makes_the_same_calls(
    row: dict[str, Any], policy: str, tmp_path: Path, nursery: trio.Nursery
) -> None:
    """Where it does not, the table says what it does instead and why the Router differs."""
    network = EpollNetwork()
    await nursery.start(network.run)
    alpha = await start_backend(nursery, network, fault_script(row))
    other = row.get("envoy", {})
    expected = other.get(policy, row[policy])[:3]

    with unreachable(row.get("backend")) as dead:
        settings = {**POLICIES[policy]["reliability"], **row}
        backend = dead or alpha.port
        port = await start_envoy(
            nursery, tmp_path, lambda port: yaml.safe_dump(_bootstrap(port, backend, settings))
        )
        client = await network.connect("127.0.0.1", port)
        body = chat_body(model="auto", stream=row.get("stream", False))
        got = await ask(client, body, patience_s=_PATIENCE_S)
        client.close()

    assert [len(alpha.calls), 0, got.status] == expected
    assert not other or other["reason"]


def _bootstrap(port: int, backend: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with the settings of the document's `reliability`."""
    route: dict[str, Any] = {"cluster": "alpha", "timeout": "300s"}
    if settings.get("retry_count") or "per_try_timeout" in settings:
        route["retry_policy"] = _retry_policy(settings)
    manager = {
        "@type": f"{_MANAGER}.HttpConnectionManager",
        "stat_prefix": "in",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": route}],
                }
            ]
        },
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {"@type": _ROUTER}}],
    }
    address = {"socket_address": {"address": "127.0.0.1", "port_value": backend}}
    cluster = {
        "name": "alpha",
        "type": "STATIC",
        "connect_timeout": _seconds(settings.get("connect_timeout", "10s")),
        "load_assignment": {
            "cluster_name": "alpha",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
        },
    }
    name = "envoy.filters.network.http_connection_manager"
    listener = {
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [{"filters": [{"name": name, "typed_config": manager}]}],
    }
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def _retry_policy(settings: dict[str, Any]) -> dict[str, Any]:
    policy: dict[str, Any] = {
        "num_retries": settings.get("retry_count", 0),
        "retry_on": settings.get("retry_on", "connect-failure,refused-stream"),
        "retriable_status_codes": settings.get("retriable_status_codes", []),
        "host_selection_retry_max_attempts": 3,
        "retry_host_predicate": [{"name": "previous_hosts", "typed_config": {"@type": _HOSTS}}],
    }
    if "retry_back_off_base" in settings:
        policy["retry_back_off"] = {"base_interval": _seconds(settings["retry_back_off_base"])}
    if "retry_after_max" in settings:
        policy["rate_limited_retry_back_off"] = {
            "reset_headers": [{"name": "retry-after", "format": "SECONDS"}],
            "max_interval": _seconds(settings["retry_after_max"]),
        }
    if "per_try_timeout" in settings:
        policy["per_try_timeout"] = _seconds(settings["per_try_timeout"])
    return policy


def _seconds(text: str) -> str:
    return f"{parse_duration_s(text):g}s"
