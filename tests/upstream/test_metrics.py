"""What operators see of clusters: counts, gauges and durations, by the reference's names."""

import re

import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.router import RunningRouter, clusters_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.network.memory import MemoryNetwork
from vsr.upstream.metrics import make_renderer
from vsr.upstream.policy.stats import DURATION_BOUNDS_S

DOCUMENT = """
listeners: [{{name: http, address: 127.0.0.1, port: 8899}}]
providers:
  defaults: {{model: alpha}}
  models:
    - name: alpha
      backend_refs:
        - {{name: one, endpoint: "127.0.0.1:{one}"}}
        - {{name: two, endpoint: "127.0.0.1:{two}"}}
      reliability: {{retry_count: 1, retry_on: 5xx, consecutive_5xx: 2, retry_back_off_base: 1ms}}
    - {{name: beta, backend_refs: [{{endpoint: "127.0.0.1:{beta}"}}]}}
routing:
  decisions:
    - name: all
      modelRefs: [{{model: alpha}}, {{model: beta}}]
      fallback: {{enabled: true}}
"""


def samples(text: bytes) -> dict[str, float]:
    """Return every sample of an exposition by its name and labels."""
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def read(router: RunningRouter) -> dict[str, float]:
    """Return the samples of a Router as it is now."""
    render = make_renderer(lambda: clusters_of(router.generation))
    return samples(render())


async def start(nursery: trio.Nursery) -> tuple[RunningRouter, dict[str, RawBackend]]:
    """Start a Router whose model `alpha` has a failing and a sound endpoint."""
    network = MemoryNetwork()
    answers = {"one": reply(503, b"{}"), "two": reply(200, b"{}"), "beta": reply(200, b"{}")}
    backends = {
        name: await RawBackend(network, answer).start(nursery) for name, answer in answers.items()
    }
    document = DOCUMENT.format(**{name: each.port for name, each in backends.items()})
    return await start_router(nursery, network, document), backends


def of(name: str, **labels: str) -> str:
    """Return a sample's name with labels of the cluster `alpha`."""
    shown = ",".join(f'{key}="{value}"' for key, value in {"cluster": "alpha", **labels}.items())
    return f"llm_upstream_{name}{{{shown}}}"


async def test_calls_attempts_and_retries_are_told_apart(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report O3: a repeated attempt is no call; which endpoint is out, and why, shows."""
    router, backends = await start(nursery)

    for _ in range(6):
        assert (await router.ask(chat_body(model="auto"))).status == 200

    found = read(router)
    assert len(backends["one"].seen) == 2
    assert found[of("requests_total", outcome="2xx")] == 6
    assert found[of("attempts_total", endpoint="one", outcome="5xx")] == 2
    assert found[of("attempts_total", endpoint="two", outcome="2xx")] == 6
    assert found[of("retries_total", outcome="5xx")] == 2
    assert found[of("ejections_total", endpoint="one", reason="consecutive_5xx")] == 1
    assert found[of("endpoint_healthy", endpoint="one")] == 0
    assert found[of("endpoint_healthy", endpoint="two")] == 1
    assert found[of("cluster_panic")] == 0
    assert found[of("streams_total", endpoint="two", outcome="complete")] == 6
    assert (
        of("requests_total", outcome="5xx") not in found
        or not found[of("requests_total", outcome="5xx")]
    )


async def test_calls_under_way_show_while_they_are(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report C2: back to 0 when a client leaves, which is a cancelled attempt."""
    router, backends = await start(nursery)
    backends["two"].answer = backends["one"].answer = b""
    client = await router.connect()
    body = chat_body(model="alpha")
    await client.send(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: r\r\nContent-Length: %d\r\n\r\n" % len(body)
        + body
    )
    await trio.testing.wait_all_tasks_blocked()

    during = read(router)
    client.close()
    await trio.testing.wait_all_tasks_blocked()
    after = read(router)

    active = [key for key in during if "active_requests" in key and "alpha" in key]
    assert sum(during[key] for key in active) == 1
    assert sum(after[key] for key in active) == 0
    cancelled = [key for key in after if "attempts_total" in key and "cancelled" in key]
    assert sum(after[key] for key in cancelled) == 1


async def test_fallbacks_are_counted_by_class_and_model(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Ours; also those that ended, by the reason."""
    router, backends = await start(nursery)
    backends["two"].answer = reply(503, b"{}")

    await router.ask(chat_body(model="auto"))
    backends["beta"].answer = reply(503, b"{}")
    await router.ask(chat_body(model="auto"))

    found = read(router)
    went_on = 'llm_upstream_fallbacks_total{class="upstream_5xx",cluster="alpha",model="beta"}'
    key = next(key for key in found if key.startswith("llm_upstream_fallbacks_total"))
    assert set(re.findall(r'(\w+)="(\w+)"', key)) == set(re.findall(r'(\w+)="(\w+)"', went_on))
    assert found[key] == 2
    stops = [value for key, value in found.items() if "fallback_stops" in key]
    assert stops == [1]


async def test_durations_stand_in_the_reference_buckets(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Thirteen bounds, each 2.5 times the one before; the last bucket has them all."""
    router, _ = await start(nursery)

    await router.ask(chat_body(model="beta"))

    text = make_renderer(lambda: clusters_of(router.generation))().decode()
    bounds = re.findall(r'attempt_duration_seconds_bucket\{[^}]*"beta"[^}]*le="([^"]+)"', text)
    assert [float(each) for each in bounds[:-1]] == [float(f"{b:.12g}") for b in DURATION_BOUNDS_S]
    assert (len(DURATION_BOUNDS_S), DURATION_BOUNDS_S[0], bounds[-1]) == (13, 0.005, "+Inf")
    counts = [float(each) for each in re.findall(r'_bucket\{[^}]*"beta"[^}]*\} (\S+)', text)]
    assert counts == sorted(counts)
    assert counts[-1] == 1


async def test_cluster_that_is_gone_has_no_series(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """After a reload; an unchanged one goes on counting."""
    router, backends = await start(nursery)
    await router.ask(chat_body(model="beta"))
    document = DOCUMENT.format(**{name: each.port for name, each in backends.items()})

    router.activate(
        document.replace("name: alpha", "name: other").replace("model: alpha", "model: other"), 2
    )

    found = read(router)
    assert not any('"alpha"' in key for key in found)
    beta = 'llm_upstream_requests_total{cluster="beta",outcome="2xx"}'
    assert found[beta] == 1
