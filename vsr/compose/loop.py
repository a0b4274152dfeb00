"""The loop of a process: its logs, its signals, its network, what remains to be written."""

import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import attrs
import msgspec
import trio

from vsr.errors import VsrError
from vsr.gateway.opening import load_http2
from vsr.network.epoll import EpollNetwork
from vsr.telemetry.access_log import AccessLog
from vsr.telemetry.losses import Losses
from vsr.workers.components import Components, Health, OnFailure, Run

_FLUSH_S = 2.0
_COLLECT_EVERY = 20_000
"""Allocations between collections of the youngest generation; requests leave no cycles behind."""
_FORMAT = "%(asctime)s %(levelname)s %(message)s"

Signals = AsyncIterator[int]
Serve = Callable[["Loop"], Awaitable[None]]
ServeUntil = Callable[["Loop", Signals], Awaitable[None]]
Write = Callable[[bytes], Awaitable[None]]


class Loop(msgspec.Struct, frozen=True):
    """What a process has before it serves anything."""

    network: EpollNetwork
    access_log: AccessLog
    components: Components = msgspec.field(default_factory=Components)


@attrs.define(eq=False)
class Beside:
    """What runs beside whatever serves clients."""

    changes: Run | None = None
    """Is started once it serves, and ends when it drains."""
    management: Callable[[trio.Nursery, Components], Awaitable[None]] | None = None
    """Begins in the nursery, and is there to the end."""
    drain_wanted: trio.Event = attrs.field(factory=trio.Event)
    """Drains as a signal does."""


def outlive_hangups() -> None:
    """Let SIGHUP end nothing: the document is read anew at it once that is served."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def run_until_signal(serve: ServeUntil) -> None:
    """Run a process that SIGTERM and SIGINT end; `serve` gets them.

    Raises:
        VsrError: as it does.
    """

    async def main() -> None:
        # Open until the last line is written: an unread signal would end the process before.
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:

            async def heedful(loop: Loop) -> None:
                await serve(loop, signals)

            await _serve_to_the_end(heedful, write_stdout)

    _run(main, _FORMAT)


def run_for_another(serve: Serve, write: Write, name: str) -> None:
    """Run a process whose signals are another's business: it ends when `serve` returns.

    Args:
        serve: what it does.
        write: takes what the access log holds.
        name: stands before its messages.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _run(
        partial(_serve_to_the_end, serve, write),
        _FORMAT.replace("%(message)", f"{name}: %(message)"),
    )


async def _serve_to_the_end(serve: Serve, write: Write) -> None:
    loop = Loop(EpollNetwork(), AccessLog(write))
    components, access_log = loop.components, loop.access_log
    async with trio.open_nursery() as tasks:
        await tasks.start(components.run, "network", OnFailure.FATAL, loop.network.run)
        tasks.start_soon(components.keep, "access log", access_log.run)
        components.watch("access log sink", lambda: health_of(access_log.losses))
        try:
            await serve(loop)
        finally:
            with trio.CancelScope(shield=True, relative_deadline=_FLUSH_S):
                await access_log.flush()
        tasks.cancel_scope.cancel(reason="stopped")


def _run(main: Callable[[], Awaitable[None]], log_format: str) -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=log_format)
    # It writes every header line that it compresses, keys included, whoever lowers that level.
    logging.getLogger("hpack").setLevel(logging.INFO)
    # What has been built by now stays: the collector need not look at it again, nor so often.
    # What little garbage loading left stays with it: finding that takes a tenth of a second.
    gc.freeze()
    gc.set_threshold(_COLLECT_EVERY)
    gc.enable()
    try:
        trio.run(main)
    except BaseExceptionGroup as group:
        raise _first_rejection(group) or group from None


def _first_rejection(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """Return the rejection that a nursery wrapped, if it is what ended the process."""
    found: BaseException | None = group.subgroup(VsrError)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def health_of(losses: Losses) -> Health:
    """Return how a sink of telemetry is, as a component."""
    return Health(losses.is_losing, losses.times, losses.last)


async def wait_beside(beside: Beside, signals: Signals) -> None:
    """Wait until somebody wants to drain, while changes of the configuration are taken."""

    async def wait_for_signal() -> None:
        await anext(signals)
        beside.drain_wanted.set()

    async with trio.open_nursery() as tasks:
        if beside.changes is not None:
            await tasks.start(beside.changes)
        tasks.start_soon(wait_for_signal)
        await beside.drain_wanted.wait()
        tasks.cancel_scope.cancel(reason="draining")


async def preload(components: Components) -> None:
    """Load, in a thread, what the first client that speaks HTTP/2 would wait for."""

    async def run(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await trio.to_thread.run_sync(load_http2)

    await components.run("HTTP/2 loading", OnFailure.DEGRADE, run)


async def write_stdout(data: bytes) -> None:
    """Write past Python's own buffer: a reader that is stuck must not hold up the exit."""
    await trio.to_thread.run_sync(write_all, data, abandon_on_cancel=True)


def write_all(data: bytes) -> None:
    """Write to standard output; blocks."""
    left = memoryview(data)
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]
