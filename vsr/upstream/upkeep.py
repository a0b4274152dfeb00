"""What runs beside the calls of a cluster: sweeps and active health checks."""

from contextlib import suppress
from functools import partial

import trio

from vsr.errors import UpstreamFailure
from vsr.resources.reliability import HealthCheck
from vsr.routing.outcome import Attempt
from vsr.upstream.attempt import Limits, WireRequest, try_host
from vsr.upstream.background import Keep, plainly
from vsr.upstream.cluster import RuntimeCluster
from vsr.upstream.policy.health import CheckResult, HealthState, check_result
from vsr.upstream.policy.host import Host
from vsr.upstream.policy.outlier import OutlierDetector
from vsr.upstream.response import Response
from vsr.upstream.uncounted import UNCOUNTED

_USER_AGENT = (b"user-agent", b"vllm-semantic-router/health-check")
_DRAINED_BYTES = 65_536
"""Of a check's answer; with more the connection is dropped. Source: the reference."""


async def keep_up(cluster: RuntimeCluster, keep: Keep = plainly) -> None:
    """Sweep and check the endpoints of `cluster` until cancelled; returns if there is no need."""
    state = cluster.state
    async with trio.open_nursery() as tasks:
        if state.outliers is not None:
            tasks.start_soon(keep, "ejection", partial(_sweep, cluster, state.outliers))
        for health in state.health:
            tasks.start_soon(keep, "health checks", partial(_check_forever, cluster, health))


async def _sweep(cluster: RuntimeCluster, outliers: OutlierDetector) -> None:
    while True:
        # A new configuration goes on where the one before was, which may still be sweeping too.
        await trio.sleep_until(outliers.next_sweep_at)
        now = trio.current_time()
        if now >= outliers.next_sweep_at and outliers.sweep(now):
            cluster.state.rotation_changed()


async def _check_forever(cluster: RuntimeCluster, health: HealthState) -> None:
    state, check = cluster.state, health.settings
    while True:
        now = trio.current_time()
        await trio.sleep_until(health.next_at(now, has_traffic=state.has_traffic))
        try:
            result = check_result(await _ask(check, health.host))
        except Exception:
            # A check that never ends would hold up the configuration for ever.
            _record(cluster, health, CheckResult.NETWORK_ERROR)
            raise
        _record(cluster, health, result)


def _record(cluster: RuntimeCluster, health: HealthState, result: CheckResult) -> None:
    """Take in how a check has ended."""
    state, now = cluster.state, trio.current_time()
    has_changed = health.record(result, now)
    if result is CheckResult.SUCCESS and state.outliers is not None:
        has_changed |= state.outliers.passed_check(health.host, now)
    state.stats.checks[health.host.endpoint.name, result] += 1
    if has_changed:
        state.rotation_changed()
    if state.is_warm:
        cluster.warmed.set()


async def _ask(check: HealthCheck, host: Host) -> int | None:
    """Ask an endpoint for its health; return its status, None if it does not answer."""
    request = WireRequest(b"GET", check.path.encode(), [_USER_AGENT], b"")
    attempt = Attempt("", host.endpoint.name, host.endpoint.address, trio.current_time())
    with trio.move_on_after(check.timeout_s), suppress(UpstreamFailure):
        response = await try_host(
            request, UNCOUNTED, host, attempt, Limits(), idle_s=check.timeout_s
        )
        try:
            await _drain(response)
        finally:
            response.close()
        return response.status
    return None


async def _drain(response: Response) -> None:
    """Read an answer to its end, unless it is long, so that its connection can be kept."""
    left = _DRAINED_BYTES - len(response.take())
    while left > 0 and not response.is_complete:
        left -= len(await response.receive())
