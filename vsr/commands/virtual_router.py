"""The Router of a dry run: the one that serves, with another network and another clock."""

from collections.abc import Callable, Iterator, Sequence

import msgspec
import trio

from vsr.compose.generation import Parts
from vsr.compose.router import Router
from vsr.dryrun.record import PolicyNote
from vsr.dryrun.run import Surroundings
from vsr.resources.snapshot import Snapshot
from vsr.telemetry.access_log import AccessLog
from vsr.upstream.clusters import Clusters


async def start_virtual_router(
    nursery: trio.Nursery, snapshot: Snapshot, surroundings: Surroundings
) -> Callable[[], Sequence[PolicyNote]]:
    """Start it; see `vsr.dryrun.run.StartRouter`.

    Raises:
        ConfigRejected: the graph does not fit what it is given.
    """
    parts = msgspec.structs.replace(
        Parts.default(surroundings.network),
        rng=surroundings.rng,
        runtime=surroundings.runtime,
        monotonic=surroundings.monotonic,
        unix=surroundings.unix,
        on_run=surroundings.on_run,
    )
    router = await Router.bind(parts, snapshot, AccessLog(_forget))
    await nursery.start(router.run)

    def notes() -> Sequence[PolicyNote]:
        generation = router.active.current
        upstream = None if generation is None else generation.upstream
        return tuple(_notes(upstream)) if isinstance(upstream, Clusters) else ()

    return notes


def _notes(clusters: Clusters) -> Iterator[PolicyNote]:
    for cluster in clusters:
        name, stats = cluster.cluster.name, cluster.state.stats
        for limit, count in sorted(stats.overflows.items()):
            yield PolicyNote(name, "refused", str(limit), count)
        for (endpoint, reason), count in sorted(stats.ejections.items()):
            yield PolicyNote(name, "ejected", f"{endpoint} ({reason})", count)


async def _forget(data: bytes) -> None:
    del data
    await trio.lowlevel.checkpoint()
