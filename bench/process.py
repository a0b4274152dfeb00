"""Child processes of the benchmark: pinned to a core, logged to a file, always ended."""

import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.traffic import CHAT_PATH, chat_reply, chat_request

ROOT = Path(__file__).resolve().parent.parent
BENCH_DIR = ROOT / ".bench"

_STOP_S = 5.0
_LOG_LIMIT_BYTES = 1_000_000
# Below the kernel's ephemeral range (32768 up), so that no load connection takes the port first.
_PORTS = range(20_000, 32_000)


class Unavailable(Exception):
    """A peer that cannot be measured here; the text is the reason shown in the report."""


def exit_on_sigterm() -> None:
    """Turn SIGTERM into `SystemExit`, so that every `with` block ends its children."""

    def leave(signum: int, _frame: object) -> None:
        sys.exit(128 + signum)

    signal.signal(signal.SIGTERM, leave)


def free_port() -> int:
    """Return a local TCP port nobody listens on."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@contextmanager
def running(command: Sequence[str], *, core: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` on `core`, its output appended to `log`, and end its whole group at exit."""
    with log.open("ab") as output:
        process = _spawn(command, core=core, output=output.fileno())
    try:
        yield process
    finally:
        stop(process)


def run_pinned(command: Sequence[str], *, core: int, timeout_s: float) -> str:
    """Run `command` on `core` to its end and return its output.

    Raises:
        RuntimeError: it failed or took longer than `timeout_s`.
    """
    process = _spawn(command, core=core, output=subprocess.PIPE)
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{command[0]} took longer than {timeout_s:.0f} s") from error
    finally:
        stop(process)
    text = output.decode(errors="replace")
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} failed ({process.returncode}): {text.strip()[-300:]}")
    return text


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the process and everything in its group; SIGKILL after `_STOP_S`."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until_serving(process: subprocess.Popen[bytes], port: int, *, timeout_s: float) -> None:
    """Return once a chat request through `port` is answered with the backend's reply, unchanged.

    Raises:
        Unavailable: the process ended, or gave no right answer in time.
    """
    deadline = time.monotonic() + timeout_s
    last = "no connection"
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Unavailable(f"ended at start with exit code {process.returncode}")
        last = _ask(port)
        if not last:
            return
        time.sleep(0.05)
    raise Unavailable(f"no right answer within {timeout_s:.0f} s ({last})")


def trim(log: Path) -> None:
    """Empty `log` if it has grown large; its writer appends, so it goes on from the start."""
    if log.stat().st_size > _LOG_LIMIT_BYTES:
        os.truncate(log, 0)


def _spawn(command: Sequence[str], *, core: int, output: int) -> subprocess.Popen[bytes]:
    # The child inherits the affinity before it starts a thread; runtimes size their pools by it.
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            start_new_session=True,
        )
    finally:
        os.sched_setaffinity(0, before)
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    if niceness:
        # Between sessions the kernel weighs autogroups, and a new one starts at 0: sched(7).
        with suppress(OSError):
            Path(f"/proc/{process.pid}/autogroup").write_text(str(niceness), encoding="ascii")
    return process


def _ask(port: int) -> str:
    """Return what is wrong with the answer to a chat request; empty if nothing is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("POST", CHAT_PATH, chat_request(), {"content-type": "application/json"})
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    finally:
        connection.close()
    if response.status != 200:
        return f"status {response.status}: {body[:200].decode(errors='replace')}"
    return "" if body == chat_reply() else "the reply differs from the backend's"
