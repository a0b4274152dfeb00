"""`global.services.observability.tracing`: what is accepted, and what it comes to."""

import sys

import pytest

from tests.config.test_serving import places
from vsr.config.report import Report
from vsr.config.source import check_bytes, read_bytes
from vsr.errors import ConfigRejected
from vsr.resources.tracing import SpanExporter, Tracing

ROOT = "global.services.observability.tracing"


def document(block: str) -> bytes:
    """Return a document with this tracing block."""
    return f"global: {{services: {{observability: {{tracing: {block}}}}}}}".encode()


def compiled(block: str) -> Tracing | None:
    """Return what a block comes to."""
    return check_bytes(document(block), {}, Report("doc.yaml")).snapshot.tracing


def problems(block: str) -> list[str]:
    """Return where and why a block is refused."""
    with pytest.raises(ConfigRejected) as caught:
        read_bytes(document(block), {}, Report("doc.yaml"))
    return [f"{each.path}: {each.what}" for each in caught.value.problems]


def test_canonical_block_compiles() -> None:
    """As the reference's own configuration has it: the endpoint is the gRPC port of a Jaeger."""
    block = """{
        enabled: true, provider: opentelemetry,
        exporter: {type: otlp, endpoint: "jaeger:4317", insecure: false},
        sampling: {type: probabilistic, rate: 0.5},
        resource: {service_name: mine, service_version: v1, deployment_environment: test}}"""

    assert compiled(block) == Tracing(
        SpanExporter.OTLP_GRPC,
        "jaeger:4317",
        is_insecure=False,
        rate=0.5,
        service_name="mine",
        service_version="v1",
        deployment_environment="test",
    )


def test_empty_block_has_the_references_defaults() -> None:
    """It is switched on by being there."""
    assert compiled("{}") == Tracing(
        SpanExporter.OTLP_GRPC,
        "vllm-sr-jaeger:4317",
        service_version="v0.3.0",
        deployment_environment="development",
    )


@pytest.mark.parametrize("text", ["{}", "global: {services: {observability: {}}}"])
def test_document_without_the_block_is_not_traced(text: str) -> None:
    """Unlike the reference's default, which needs a collector that nobody named."""
    assert check_bytes(text.encode(), {}, Report("doc.yaml")).snapshot.tracing is None


def test_block_that_is_off_is_not_traced() -> None:
    """And nothing in it matters, installed or not."""
    assert compiled("{enabled: false, exporter: {endpoint: nonsense}}") is None


@pytest.mark.parametrize(
    ("sampling", "rate", "heeds_parent"),
    [
        ("always_on", 1.0, True),
        ("always_off", 0.0, False),
        ("probabilistic, rate: 0.25", 0.25, True),
        ("probabilistic", 1.0, True),
        ("always_on, rate: 0.25", 1.0, True),
    ],
)
def test_sampling_comes_to_a_rate(sampling: str, rate: float, *, heeds_parent: bool) -> None:
    """A rate counts only where sampling is probabilistic."""
    found = compiled(f"{{sampling: {{type: {sampling}}}}}")

    assert found is not None
    assert (found.rate, found.heeds_parent) == (rate, heeds_parent)


@pytest.mark.parametrize(
    ("written", "exporter", "endpoint"),
    [
        ("collector:4317", SpanExporter.OTLP_GRPC, "collector:4317"),
        ("'[::1]:4317'", SpanExporter.OTLP_GRPC, "[::1]:4317"),
        ("http://c:4318", SpanExporter.OTLP_HTTP, "http://c:4318/v1/traces"),
        ("https://c.example/", SpanExporter.OTLP_HTTP, "https://c.example/v1/traces"),
        ("http://c:4318/otlp/v1/traces", SpanExporter.OTLP_HTTP, "http://c:4318/otlp/v1/traces"),
    ],
)
def test_endpoint_says_which_protocol(written: str, exporter: SpanExporter, endpoint: str) -> None:
    """A URL is one of OTLP over HTTP, and gets the usual path if it has none."""
    found = compiled(f"{{exporter: {{endpoint: {written}}}}}")

    assert found is not None
    assert (found.exporter, found.endpoint) == (exporter, endpoint)


@pytest.mark.parametrize(
    ("block", "place"),
    [
        ("{exporter: {endpoint: collector}}", "exporter.endpoint"),
        ("{exporter: {endpoint: 'collector:4317/path'}}", "exporter.endpoint"),
        ("{exporter: {endpoint: 'collector:99999'}}", "exporter.endpoint"),
        ("{exporter: {endpoint: 'http://user:key@collector:4318'}}", "exporter.endpoint"),
        ("{exporter: {endpoint: 'ftp://collector:4318'}}", "exporter.endpoint"),
        ("{exporter: {endpoint: ''}}", "exporter.endpoint"),
        ("{exporter: {type: zipkin}}", "exporter.type"),
        ("{provider: datadog}", "provider"),
        ("{sampling: {type: sometimes}}", "sampling.type"),
        ("{sampling: {type: probabilistic, rate: 1.5}}", "sampling.rate"),
        ("{resource: {service_name: ' '}}", "resource.service_name"),
    ],
)
def test_faulty_block_is_refused(block: str, place: str) -> None:
    """Where the fault is; credentials of a URL are not shown."""
    [problem] = problems(block)

    assert problem.startswith(f"{ROOT}.{place}: ")
    assert "user:key" not in problem


def test_rate_without_a_meaning_is_warned_of() -> None:
    """Somebody wanted less than all."""
    valid = read_bytes(document("{sampling: {rate: 0.1}}"), {}, Report("doc.yaml"))

    assert [warning.path for warning in valid.warnings] == [f"{ROOT}.sampling.rate"]


@pytest.mark.parametrize(
    ("exporter", "missing"),
    [
        ("{type: stdout}", "opentelemetry.sdk"),
        ("{endpoint: 'c:4317'}", "opentelemetry.exporter.otlp.proto.grpc"),
        ("{endpoint: 'http://c:4318'}", "opentelemetry.exporter.otlp.proto.http"),
    ],
)
def test_missing_packages_keep_it_from_being_served(
    monkeypatch: pytest.MonkeyPatch, exporter: str, missing: str
) -> None:
    """The document is valid; here nobody could export its spans."""
    text = document(f"{{exporter: {exporter}}}").decode()
    assert places(text) == []

    monkeypatch.setitem(sys.modules, missing, None)

    assert places(text) == [ROOT]
