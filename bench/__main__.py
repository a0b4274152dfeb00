"""Command line of the benchmark: `python -m bench`."""

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import attrs

from bench.load import Loader
from bench.measure import Options, Results, measure
from bench.peers import PROXIES
from bench.process import BENCH_DIR, exit_on_sigterm
from bench.report import render

# Starting, stopping and summing up cost about this much around each second of load.
_OVERHEAD_S = 0.2


def main() -> int:
    """Measure as the command line says; returns 1 if no proxy could be measured."""
    options, json_file, niceness = _parse(sys.argv[1:])
    if niceness:
        os.setpriority(os.PRIO_PROCESS, 0, niceness)  # children inherit it
    exit_on_sigterm()
    cells = (len(options.clients) + len(options.streams)) * (len(options.peers) + 1)
    estimate_s = cells * options.rounds * (options.seconds + _OVERHEAD_S)
    wrk = Loader(options.core_load, BENCH_DIR).wrk
    print(
        f"{platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}; "
        f"proxies on core {options.core_proxy}, backend and load on core {options.core_load}; "
        f"{options.rounds} rounds of {options.seconds} s; "
        f"load: {'wrk' if wrk else 'bench.generator'}; "
        f"load average before {os.getloadavg()[0]:.1f}; about {estimate_s / 60:.1f} min",
        flush=True,
    )
    try:
        results = measure(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print(f"\n{render(options, results)}")
    if json_file is not None:
        json_file.write_text(json.dumps(_as_json(options, results), indent=1))
    return 1 if results.missing.keys() >= set(options.peers) else 0


def _parse(arguments: list[str]) -> tuple[Options, Path | None, int]:
    cores = sorted(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=1, help="of load per peer and level")
    parser.add_argument("--only", type=_peers, default=list(PROXIES), help="router,envoy,…")
    parser.add_argument("--clients", type=_levels, default=[1, 8, 32, 64], help="may be empty")
    parser.add_argument("--streams", type=_levels, default=[8, 64], help="may be empty")
    parser.add_argument("--core-proxy", type=int, default=cores[0])
    parser.add_argument("--core-load", type=int, default=cores[-1])
    parser.add_argument("--nice", type=int, default=0, help="of everything; root can go below 0")
    parser.add_argument("--json", type=Path, help="also write every sample to this file")
    given = parser.parse_args(arguments)
    for core in (given.core_proxy, given.core_load):
        if core not in cores:
            parser.error(f"core {core} is not available; there are {cores}")
    if given.core_proxy == given.core_load:
        parser.error("proxy and load need a core each")
    if min(given.rounds, given.seconds) < 1:
        parser.error("--rounds and --seconds must be at least 1")
    options = Options(
        peers=given.only,
        clients=given.clients,
        streams=given.streams,
        rounds=given.rounds,
        seconds=given.seconds,
        core_proxy=given.core_proxy,
        core_load=given.core_load,
    )
    return options, given.json, given.nice


def _peers(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    unknown = sorted(set(names) - set(PROXIES))
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"choose from {', '.join(PROXIES)}")
    return [name for name in PROXIES if name in names]


def _levels(text: str) -> list[int]:
    levels = [int(level) for level in text.split(",") if level]
    if any(level < 1 for level in levels):
        raise argparse.ArgumentTypeError("levels are whole numbers from 1")
    return levels


def _as_json(options: Options, results: Results) -> dict[str, Any]:
    return {
        "options": attrs.asdict(options),
        "samples": [attrs.asdict(sample) for sample in results.samples],
        "rss_bytes": {f"{peer} {kind}": rss for (peer, kind), rss in results.rss_bytes.items()},
        "missing": results.missing,
        "backends": results.backends,
    }


if __name__ == "__main__":
    sys.exit(main())
