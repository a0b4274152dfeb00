"""What starting costs: CPU of `vllm-sr --help`, time until `/ready`, idle memory.

`python -m bench.startup [--times 5]` prints medians.
"""

import argparse
import http.client
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bench.cpu import rss_bytes
from bench.peers import Site, router_command
from bench.process import BENCH_DIR, Unavailable, exit_on_sigterm, free_port, running

_START_S = 20.0
_IDLE_S = 1.0


def main() -> int:
    """Measure and print; returns 1 if the commands are not installed."""
    parser = argparse.ArgumentParser(prog="python -m bench.startup", description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    exit_on_sigterm()
    scratch = BENCH_DIR / "run"
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        help_cpu_ms = median(_help_cpu_s() for _ in range(times)) * 1000
        starts = [_start_once(scratch) for _ in range(times)]
    except Unavailable as error:
        print(f"NOT MEASURED: {error}")
        return 1
    print(f"medians of {times}")
    print(f"vllm-sr --help, CPU        {help_cpu_ms:7.0f} ms  (must: under 150)")
    print(
        f"cold start until /ready    {median(s for s, _ in starts) * 1000:7.0f} ms  (under 1,000)"
    )
    print(
        f"idle RSS                   {median(rss for _, rss in starts) / 1e6:7.1f} MB  (under 60)"
    )
    return 0


def _help_cpu_s() -> float:
    script = Path(sys.executable).parent / "vllm-sr"
    if not script.exists():
        raise Unavailable("vllm-sr is not installed")
    process = subprocess.Popen([script, "--help"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise Unavailable(f"vllm-sr --help failed ({process.returncode})")
    return usage.ru_utime + usage.ru_stime


def _start_once(scratch: Path) -> tuple[float, int]:
    """Return the seconds until the Router was ready, and its memory when it has been idle."""
    # No backend listens there: the Router is ready without one.
    site = Site(free_port(), free_port(), scratch)
    command = router_command(site)
    started_at = time.monotonic()
    core = min(os.sched_getaffinity(0))
    with running(command, core=core, log=scratch / "startup.log") as process:
        while not _is_ready(site.port):
            if process.poll() is not None or time.monotonic() > started_at + _START_S:
                raise Unavailable(f"the Router did not get ready; see {scratch / 'startup.log'}")
            time.sleep(0.005)
        ready_s = time.monotonic() - started_at
        time.sleep(_IDLE_S)
        return ready_s, rss_bytes(process.pid)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/ready")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
