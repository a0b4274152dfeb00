"""What `vllm-sr backends` prints and does; see `status_commands`."""

from urllib.parse import quote

import click
import msgspec

from vsr.commands.api_client import Api, echo_json
from vsr.commands.remote_status import named
from vsr.commands.table import room, table, wrapped

_HEAD = ("MODEL", "ENDPOINT", "STATE", "IN FLIGHT", "BREAKER", "ATTEMPTS")


class _Breaker(msgspec.Struct, frozen=True):
    open: bool
    active: int
    waiting: int


class _Seen(msgspec.Struct, frozen=True):
    """An endpoint as one worker sees it, or as it is in a single process."""

    healthy: bool
    ejected: bool
    ejection_reason: str | None
    ejected_for_s: float | None
    in_flight: int
    worker: int = 0
    quarantined: bool = False

    @property
    def state(self) -> str:
        """Return why calls go there or not."""
        if self.quarantined:
            return "quarantined"
        if self.ejected:
            return f"ejected {self.ejected_for_s or 0:.0f}s ({self.ejection_reason})"
        return "available" if self.healthy else "unhealthy"


class _Endpoint(_Seen, frozen=True, kw_only=True):
    name: str
    attempts: dict[str, int]
    workers: tuple[_Seen, ...] = ()


class _SeenCluster(msgspec.Struct, frozen=True):
    worker: int
    panic: bool


class _Cluster(msgspec.Struct, frozen=True):
    name: str
    panic: bool
    breaker: _Breaker
    endpoints: tuple[_Endpoint, ...]
    workers: tuple[_SeenCluster, ...] = ()


class _Out(msgspec.Struct, frozen=True):
    model: str
    endpoint: str
    served: bool


class _Backends(msgspec.Struct, frozen=True):
    clusters: tuple[_Cluster, ...]
    quarantine: tuple[_Out, ...] = ()
    missing: tuple[int, ...] = ()


class _Change(msgspec.Struct, frozen=True):
    model: str
    endpoint: str
    left: int
    missing: tuple[int, ...] = ()


def tell_backends(api: Api, output: str) -> None:
    """Print the endpoints of every model."""
    told = api.ask("GET", "/api/v1/backends")
    if output == "json":
        echo_json(told)
        return
    found = told.read(_Backends)
    rows = [
        row
        for cluster in found.clusters
        for endpoint in cluster.endpoints
        for row in _rows(cluster, endpoint)
    ]
    click.echo(table(_HEAD, rows, room()))
    absent = [f"{each.model} {each.endpoint}" for each in found.quarantine if not each.served]
    if absent:
        click.echo(wrapped("quarantined, should they be served again: " + ", ".join(absent), 2))
    if found.missing:
        click.echo(wrapped(f"{named(found.missing)}: no answer, so not counted here", 2))


def _rows(cluster: _Cluster, endpoint: _Endpoint) -> list[tuple[str, ...]]:
    """Return the row of an endpoint; where workers see it otherwise, one more for each of them."""
    waiting = f", {cluster.breaker.waiting} wait" if cluster.breaker.waiting else ""
    panicking = {each.worker for each in cluster.workers if each.panic}
    states = {
        each.worker: _state(each, panics=each.worker in panicking) for each in endpoint.workers
    }
    # Two of them that leave it out for another time agree all the same.
    agree = len({state.partition(" ")[0] for state in states.values()}) < 2  # noqa: PLR2004
    own = _state(endpoint, panics=cluster.panic)
    rows: list[tuple[str, ...]] = [
        (
            cluster.name,
            endpoint.name,
            own if agree else "workers differ",
            str(endpoint.in_flight),
            ("open" if cluster.breaker.open else "closed") + waiting,
            " ".join(f"{key}:{count}" for key, count in endpoint.attempts.items()),
        )
    ]
    if not agree:
        rows += [
            ("", f"worker {each.worker}", states[each.worker], str(each.in_flight), "", "")
            for each in endpoint.workers
        ]
    return rows


def _state(seen: _Seen, *, panics: bool) -> str:
    return seen.state + (", panic" if panics and not seen.quarantined else "")


def quarantine(api: Api, model: str, endpoint: str, *, allow_empty: bool) -> None:
    """Take an endpoint out of rotation."""
    query = "?allow_empty=true" if allow_empty else ""
    change = api.ask("POST", _path(model, endpoint) + query).read(_Change)
    left = {0: "no endpoint is left: it answers 503", 1: "1 endpoint is left"}.get(
        change.left, f"{change.left} endpoints are left"
    )
    click.echo(wrapped(f"{endpoint} of {model} gets no new requests; {left}.", 0))
    _tell_missing(change)


def release(api: Api, model: str, endpoint: str) -> None:
    """Put an endpoint back into rotation."""
    change = api.ask("DELETE", _path(model, endpoint)).read(_Change)
    click.echo(wrapped(f"{endpoint} of {model} gets requests again, if its checks allow it.", 0))
    _tell_missing(change)


def _tell_missing(change: _Change) -> None:
    if change.missing:
        click.echo(wrapped(f"{named(change.missing)}: no word yet of heeding it.", 0))


def _path(model: str, endpoint: str) -> str:
    return f"/api/v1/backends/{quote(model, safe='')}/{quote(endpoint, safe='')}/quarantine"
