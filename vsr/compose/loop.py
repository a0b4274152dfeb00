"""The loop of a process: its logs, its signals, its network, what remains to be written."""

import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import trio

from vsr.errors import VsrError
from vsr.network.epoll import EpollNetwork
from vsr.telemetry.access_log import AccessLog

_FLUSH_S = 2.0
_COLLECT_EVERY = 20_000
"""Allocations between collections of the youngest generation; requests leave no cycles behind."""
_FORMAT = "%(asctime)s %(levelname)s %(message)s"

Signals = AsyncIterator[int]
Serve = Callable[[EpollNetwork, AccessLog], Awaitable[None]]
ServeUntil = Callable[[EpollNetwork, AccessLog, Signals], Awaitable[None]]
Write = Callable[[bytes], Awaitable[None]]


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

            async def heedful(network: EpollNetwork, access_log: AccessLog) -> None:
                await serve(network, access_log, signals)

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
    network = EpollNetwork()
    access_log = AccessLog(write)
    async with trio.open_nursery() as tasks:
        await tasks.start(network.run)
        tasks.start_soon(access_log.run)
        try:
            await serve(network, access_log)
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


async def write_stdout(data: bytes) -> None:
    """Write past Python's own buffer: a reader that is stuck must not hold up the exit."""
    await trio.to_thread.run_sync(write_all, data, abandon_on_cancel=True)


def write_all(data: bytes) -> None:
    """Write to standard output; blocks."""
    left = memoryview(data)
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]
