"""What `vllm-sr status` prints; see `status_commands`."""

from datetime import timedelta

import click
import msgspec

from vsr.commands.api_client import Api, echo_json
from vsr.commands.table import room, wrapped


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


class _Worker(msgspec.Struct, frozen=True):
    worker: int
    pid: int
    phase: str
    version: int
    restarts: int
    uptime_s: float


class _Component(msgspec.Struct, frozen=True):
    name: str
    worker: int
    state: str
    failures: int
    last_failure: str


class _Serving(msgspec.Struct, frozen=True):
    workers: int
    uptime_s: float
    open_connections: int
    listeners: dict[str, int]
    generations: tuple[_Generation, ...]
    processes: tuple[_Worker, ...] = ()
    components: tuple[_Component, ...] = ()
    missing: tuple[int, ...] = ()


class _Status(msgspec.Struct, frozen=True):
    release: str
    state: str
    gateway: str
    serving: _Serving
    config: _Config


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
    listeners = ", ".join(f"{name} on port {port}" for name, port in serving.listeners.items())
    alive = ", ".join(
        f"{each.version}{' (active)' if each.active else ''}: {each.leases}"
        for each in serving.generations
    )
    state = f"{found.state} for {_span(serving.uptime_s)}"
    rows = [
        (
            "state",
            f"{state}, {found.gateway} mode, release {found.release}",
        ),
        *_labelled("workers", _workers(serving)),
        ("listeners", listeners or "none"),
        ("connections", str(serving.open_connections)),
        ("requests", f"by version: {alive}" if alive else "none"),
        *_labelled("components", _components(serving)),
    ]
    if serving.missing:
        rows.append(("no answer", f"{named(serving.missing)}: what it does is not counted here"))
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


def _labelled(label: str, lines: list[str]) -> list[tuple[str, str]]:
    return [("" if at else label, line) for at, line in enumerate(lines)]


def _workers(serving: _Serving) -> list[str]:
    if serving.workers == 1:
        return ["1"]
    serve = sum(each.phase == "serving" for each in serving.processes)
    lines = [f"{serve} of {serving.workers} serve"]
    for each in serving.processes:
        line = f"{each.worker}: {each.phase}, pid {each.pid}, version {each.version}"
        if each.phase != "ended":
            line += f", for {_span(each.uptime_s)}"
        lines.append(line + (f", restarts {each.restarts}" if each.restarts else ""))
    return lines


def _components(serving: _Serving) -> list[str]:
    """Return a line for each component that is not well, or was not."""
    found = serving.components
    well = [each for each in found if each.state == "running"]
    lines = ["all run" if len(well) == len(found) else f"{len(well)} of {len(found)} run"]
    for each in found:
        if each.state == "running" and not each.failures:
            continue
        place = f" of worker {each.worker}" if each.worker else ""
        told = f"failures {each.failures}, the last {each.last_failure}"
        lines.append(f"{each.name}{place}: {each.state}; {told}")
    return lines


def named(workers: tuple[int, ...]) -> str:
    """Return how workers are called."""
    numbers = ", ".join(map(str, workers))
    return f"worker{'s' if len(workers) > 1 else ''} {numbers}"


def _span(seconds: float) -> timedelta:
    return timedelta(seconds=int(seconds))


def _from(origin: _Origin) -> str:
    return origin.source + (f" ({origin.principal})" if origin.principal else "")
