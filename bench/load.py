"""One load on one port: wrk where it is installed, else our generator, and streams always ours."""

import json
import shutil
import sys
from pathlib import Path

import attrs

from bench.process import run_pinned
from bench.traffic import CHAT_PATH, CHUNK_INTERVAL_MS, chat_request

_GRACE_S = 20.0
_WRK_SCRIPT = """\
wrk.method = "POST"
wrk.body = [[{body}]]
wrk.headers["content-type"] = "application/json"
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\\n{{"count": %d, "errors": %d, "seconds": %f, "p50_us": %f, "p99_us": %f}}\\n',
    summary.requests, e.connect + e.read + e.write + e.status + e.timeout,
    summary.duration / 1e6, latency:percentile(50), latency:percentile(99)))
end
"""


@attrs.frozen
class Load:
    """What the clients saw: requests and their latency, or chunks and their delay."""

    count: int
    errors: int  # failed requests, or streams that broke
    seconds: float
    p50_us: float
    p99_us: float


@attrs.frozen
class Loader:
    """Puts load on a port from its own core; `scratch` is for the script of wrk."""

    core: int
    scratch: Path
    wrk: str | None = attrs.field(factory=lambda: shutil.which("wrk"))

    def requests(self, port: int, clients: int, *, seconds: int) -> Load:
        """Let `clients` ask for buffered replies over keep-alive connections for `seconds`."""
        if self.wrk is None:
            return self._generate(port, clients, "--seconds", seconds, seconds)
        script = self.scratch / "chat.lua"
        script.write_text(_WRK_SCRIPT.format(body=chat_request().decode()))
        command = [self.wrk, "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "5s"]
        command += ["--script", str(script), f"http://127.0.0.1:{port}{CHAT_PATH}"]
        return _parse(run_pinned(command, core=self.core, timeout_s=seconds + _GRACE_S))

    def streams(self, port: int, streams: int, *, seconds: int) -> Load:
        """Read `streams` streams side by side, each `seconds` long."""
        chunks = seconds * 1000 // CHUNK_INTERVAL_MS
        return self._generate(port, streams, "--chunks", chunks, seconds)

    def _generate(self, port: int, clients: int, option: str, value: int, seconds: int) -> Load:
        command = [sys.executable, "-m", "bench.generator", "--port", str(port)]
        command += ["--clients", str(clients), option, str(value)]
        return _parse(run_pinned(command, core=self.core, timeout_s=seconds + _GRACE_S))


def _parse(output: str) -> Load:
    return Load(**json.loads(output.strip().splitlines()[-1]))
