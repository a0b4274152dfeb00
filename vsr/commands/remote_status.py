"""What `vllm-sr status`, `backends list` and `drain` do; see `status_commands`."""

from datetime import timedelta

import click
import msgspec

from vsr.commands.api_client import Api, echo_json
from vsr.commands.table import room, table, wrapped


class _Origin(msgspec.Struct, frozen=True):
    source: str
    principal: str = ""


class _Attempt(msgspec.Struct, frozen=True):
    status: str
    stage: str
    origin: _Origin
    started_at: str
    version: int = 0
    error: str = ""


class _Active(msgspec.Struct, frozen=True):
    version: int
    hash: str
    origin: _Origin
    activated_at: str


class _Config(msgspec.Struct, frozen=True):
    active: _Active | None = None
    latest: _Attempt | None = None
    last_rejection: _Attempt | None = None


class _Generation(msgspec.Struct, frozen=True):
    version: int
    active: bool
    leases: int


class _Serving(msgspec.Struct, frozen=True):
    workers: int
    uptime_s: float
    open_connections: int
    listeners: dict[str, int]
    generations: tuple[_Generation, ...]


class _Status(msgspec.Struct, frozen=True):
    release: str
    state: str
    gateway: str
    serving: _Serving
    config: _Config


class _Breaker(msgspec.Struct, frozen=True):
    open: bool
    active: int
    waiting: int


class _Endpoint(msgspec.Struct, frozen=True):
    name: str
    available: bool
    healthy: bool
    ejected: bool
    ejection_reason: str | None
    ejected_for_s: float | None
    in_flight: int
    attempts: dict[str, int]


class _Cluster(msgspec.Struct, frozen=True):
    name: str
    panic: bool
    breaker: _Breaker
    endpoints: tuple[_Endpoint, ...]


class _Backends(msgspec.Struct, frozen=True):
    clusters: tuple[_Cluster, ...]


def tell_status(api: Api, output: str) -> None:
    """Print what serves."""
    told = api.ask("GET", "/api/v1/status")
    if output == "json":
        echo_json(told)
        return
    for name, text in _rows(told.read(_Status)):
        click.echo(wrapped(text, 16, first=name or " ", width=room()))


def _rows(found: _Status) -> list[tuple[str, str]]:
    serving, config = found.serving, found.config
    uptime = timedelta(seconds=int(serving.uptime_s))
    listeners = ", ".join(f"{name} on port {port}" for name, port in serving.listeners.items())
    alive = ", ".join(
        f"{each.version}{' (active)' if each.active else ''}: {each.leases}"
        for each in serving.generations
    )
    rows = [
        ("state", f"{found.state} for {uptime}, {found.gateway} mode, release {found.release}"),
        ("workers", str(serving.workers)),
        ("listeners", listeners or "none"),
        ("connections", str(serving.open_connections)),
        ("requests", f"by version: {alive}" if alive else "none"),
    ]
    if config.active is not None:
        active = config.active
        since = f"since {active.activated_at}, from {_from(active.origin)}"
        rows += [("configuration", f"version {active.version}, {since}")]
        rows += [("", f"sha256 {active.hash[:32]}...")]
    if config.latest is not None and config.latest.status != "active":
        rows.append(("latest change", f"{config.latest.status} at {config.latest.stage}"))
    if config.last_rejection is not None:
        last = config.last_rejection
        rows.append(
            ("last refused", f"{last.started_at}, from {_from(last.origin)}, at {last.stage}")
        )
        rows += [("", part) for part in last.error.split("; ") if part]
    return rows


def _from(origin: _Origin) -> str:
    return origin.source + (f" ({origin.principal})" if origin.principal else "")


def tell_backends(api: Api, output: str) -> None:
    """Print the endpoints of every model."""
    told = api.ask("GET", "/api/v1/backends")
    if output == "json":
        echo_json(told)
        return
    clusters = told.read(_Backends).clusters
    rows = [_row(cluster, each) for cluster in clusters for each in cluster.endpoints]
    head = ("MODEL", "ENDPOINT", "STATE", "IN FLIGHT", "BREAKER", "ATTEMPTS")
    click.echo(table(head, rows, room()))


def _row(cluster: _Cluster, endpoint: _Endpoint) -> tuple[str, ...]:
    waiting = f", {cluster.breaker.waiting} wait" if cluster.breaker.waiting else ""
    return (
        cluster.name,
        endpoint.name,
        _state(endpoint) + (", panic" if cluster.panic else ""),
        str(endpoint.in_flight),
        ("open" if cluster.breaker.open else "closed") + waiting,
        " ".join(f"{key}:{count}" for key, count in endpoint.attempts.items()),
    )


def _state(endpoint: _Endpoint) -> str:
    if endpoint.ejected:
        return f"ejected {endpoint.ejected_for_s or 0:.0f}s ({endpoint.ejection_reason})"
    return "available" if endpoint.healthy else "unhealthy"
