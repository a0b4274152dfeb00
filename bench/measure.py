"""The run: starts the proxies side by side and measures them in turn, round by round."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

import attrs

from bench.cpu import cpu_ns, rss_bytes, waiting_ns
from bench.load import Load, Loader
from bench.peers import (
    PROXIES,
    Site,
    nginx_backend_command,
    nginx_path,
    own_backend_command,
)
from bench.process import BENCH_DIR, Unavailable, free_port, running, trim, wait_until_serving

DIRECT = "direct"
Kind = Literal["buffered", "stream"]

_START_S = 30.0
_WARM_UP_CLIENTS = 32


@attrs.frozen
class Options:
    """What to measure; `clients` and `streams` are levels of concurrency."""

    peers: Sequence[str]
    clients: Sequence[int]
    streams: Sequence[int]
    rounds: int
    seconds: int
    core_proxy: int
    core_load: int

    def levels(self, kind: Kind) -> Sequence[int]:
        """Return the levels of concurrency of one kind of load."""
        return self.clients if kind == "buffered" else self.streams


@attrs.frozen
class Sample:
    """One peer under one load in one round."""

    peer: str
    kind: Kind
    level: int
    round: int
    load: Load
    cpu_ns: int
    waiting_ns: int  # ready to run, but its core was taken


@attrs.define
class Results:
    """Everything measured, and why the rest was not."""

    samples: list[Sample] = attrs.field(factory=list)
    rss_bytes: dict[tuple[str, Kind], int] = attrs.field(factory=dict)
    missing: dict[str, str] = attrs.field(factory=dict)
    backends: dict[Kind, str] = attrs.field(factory=dict)


@attrs.frozen
class _Target:
    """A port to put load on, and the process behind it; None is the backend itself."""

    port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def usage_ns(self) -> tuple[int, int]:
        """Return CPU time and waiting time so far."""
        if self.process is None:
            return 0, 0
        return cpu_ns(self.process.pid), waiting_ns(self.process.pid)

    def check_alive(self) -> None:
        if self.process is not None and self.process.poll() is not None:
            raise RuntimeError(f"ended with exit code {self.process.returncode}")


def measure(options: Options) -> Results:
    """Measure every peer that can be started here, buffered replies first, then streams."""
    BENCH_DIR.mkdir(exist_ok=True)
    scratch = BENCH_DIR / "run"
    scratch.mkdir(exist_ok=True)
    for log in scratch.glob("*.log"):
        log.unlink()
    loader = Loader(core=options.core_load, scratch=scratch)
    results = Results()
    kinds: tuple[Kind, ...] = ("buffered", "stream")
    for kind in kinds:
        if options.levels(kind):
            with _targets(kind, options, results, scratch) as targets:
                _Phase(kind, options, targets, loader, results).run()
    return results


@contextmanager
def _targets(
    kind: Kind, options: Options, results: Results, scratch: Path
) -> Iterator[Mapping[str, _Target]]:
    """Start the backend and the proxies in front of it; they all end with the block."""
    with ExitStack() as stack:
        backend_port = free_port()
        direct = _start_backend(stack, kind, options, results, Site(0, backend_port, scratch))
        targets = {DIRECT: direct}
        for peer in options.peers:
            if peer in results.missing:
                continue
            site = Site(free_port(), backend_port, scratch)
            log = scratch / f"{peer}-{kind}.log"
            try:
                command = PROXIES[peer](site)
                process = stack.enter_context(running(command, core=options.core_proxy, log=log))
                wait_until_serving(process, site.port, timeout_s=_START_S)
            except Unavailable as error:
                results.missing[peer] = f"{error}{_last_line(log)}"
                continue
            targets[peer] = _Target(site.port, log, process)
        yield targets


def _start_backend(
    stack: ExitStack, kind: Kind, options: Options, results: Results, site: Site
) -> _Target:
    use_nginx = kind == "buffered" and nginx_path() is not None
    results.backends[kind] = "nginx" if use_nginx else "bench.backend"
    command = nginx_backend_command(site) if use_nginx else own_backend_command(site)
    log = site.scratch / f"backend-{kind}.log"
    process = stack.enter_context(running(command, core=options.core_load, log=log))
    wait_until_serving(process, site.backend_port, timeout_s=_START_S)
    return _Target(site.backend_port, log)


@attrs.frozen
class _Phase:
    """All rounds of one kind of load."""

    kind: Kind
    options: Options
    targets: Mapping[str, _Target]
    loader: Loader
    results: Results

    def run(self) -> None:
        for peer in self.targets:
            self._load(peer, "at warm-up", "buffered", _WARM_UP_CLIENTS)
        for round_index in range(self.options.rounds):
            print(f"{self.kind}: round {round_index + 1} of {self.options.rounds}", flush=True)
            for level in self.options.levels(self.kind):
                # Next to each other in time, since the host's speed drifts.
                for peer in self.targets:
                    self._sample(peer, level, round_index)
        for peer, target in self.targets.items():
            if target.process is not None:
                self.results.rss_bytes[peer, self.kind] = rss_bytes(target.process.pid)

    def _sample(self, peer: str, level: int, round_index: int) -> None:
        cpu_before_ns, waiting_before_ns = self.targets[peer].usage_ns()
        load = self._load(peer, f"in round {round_index + 1}", self.kind, level)
        if load is None:
            return
        cpu_after_ns, waiting_after_ns = self.targets[peer].usage_ns()
        self.results.samples.append(
            Sample(
                peer=peer,
                kind=self.kind,
                level=level,
                round=round_index,
                load=load,
                cpu_ns=cpu_after_ns - cpu_before_ns,
                waiting_ns=waiting_after_ns - waiting_before_ns,
            )
        )

    def _load(self, peer: str, when: str, kind: Kind, level: int) -> Load | None:
        """Put load on `peer`; if it fails, the peer counts as missing from then on."""
        if peer in self.results.missing:
            return None
        target = self.targets[peer]
        put = self.loader.requests if kind == "buffered" else self.loader.streams
        try:
            load = put(target.port, level, seconds=self.options.seconds)
            target.check_alive()
        except RuntimeError as error:
            if target.process is None:
                raise
            self.results.missing[peer] = f"stopped {when}: {error}{_last_line(target.log)}"
            return None
        trim(target.log)
        return load


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return f"; its last line: {lines[-1][:200]}" if lines else ""
