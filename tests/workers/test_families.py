"""Metrics on their way between processes."""

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from vsr.workers.families import families_of, make_renderer
from vsr.workers.messages import Family

NAMES = ("llm_calls", "llm_active", "llm_seconds")


def told() -> tuple[Family, ...]:
    """Return one metric of each kind, with a label that has to be escaped."""
    calls = CounterMetricFamily(NAMES[0], "Calls.", labels=("cluster",))
    calls.add_metric(('a "b"\n',), 3.0)
    active = GaugeMetricFamily(NAMES[1], "Active.", value=2.0)
    seconds = HistogramMetricFamily(NAMES[2], "Seconds.", labels=())
    seconds.add_metric((), [("0.5", 1.0), ("+Inf", 2.0)], 1.25)
    return families_of((calls, active, seconds))


def test_metrics_are_rendered_as_their_process_would() -> None:
    """Names, kinds, buckets and escapes of Prometheus' text format."""
    families = told()

    lines = make_renderer(lambda: families)().decode().splitlines()

    assert "# TYPE llm_calls_total counter" in lines
    assert 'llm_calls_total{cluster="a \\"b\\"\\n"} 3.0' in lines
    assert "llm_active 2.0" in lines
    assert 'llm_seconds_bucket{le="0.5"} 1.0' in lines
    assert "llm_seconds_sum 1.25" in lines


def test_renderer_shows_what_there_is_at_the_time() -> None:
    """It is loaded once, and asked at each scrape."""
    families: list[Family] = []
    render = make_renderer(lambda: families)

    before = render()
    families.extend(told())

    assert before == b""
    assert b"llm_calls_total" in render()
