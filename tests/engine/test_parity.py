"""Cases of the reference's parity corpus, over the wire: what the backend and the client get.

Our own rule where it differs: a body keeps the client's member order, so only the model changes.
"""

from typing import Any

import attrs
import pytest
import trio
import trio.testing
import yaml

from tests.demo.raw_client import Got
from tests.fakes.router import document_of, model_of, start_router
from tests.reference_dir import reference_dir
from tests.upstream.raw_backend import RawBackend, reply
from vsr.headers import HeaderLine
from vsr.network.memory import MemoryNetwork

SERVED = [
    "auto-no-match-default-model",
    "explicit-remote-model",
    "unknown-model",
    "unpublished-flow-model",
    "invalid-json-body",
    "missing-model-field",
    "responses-api-not-enabled",
    "client-selected-model-overwritten",
    "client-envoy-control-headers",
    "skip-processing-header-ignored",
]
"""Cases whose every feature this version has."""
STATUS_AND_HEADERS_SERVED = ["upstream-429"]
"""Cases of which all but the body is served: backend errors are not re-encoded yet."""

ROUTING = """{
    signals: {keywords: [{name: urgent_keywords, operator: OR, keywords: [urgent, asap]}]},
    decisions: [{name: urgent_route, priority: 20, modelRefs: [{model: general-small}],
      rules: {operator: AND, conditions: [{type: keyword, name: urgent_keywords}]}}]}"""


@attrs.frozen
class Run:
    """One case as both sides have it."""

    got: Got
    head_lines: list[HeaderLine]
    """Of the request that the backend saw; empty if it saw none."""
    target: bytes
    body: bytes


def _corpus() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    folder = reference_dir() / "parity-corpus"
    cases = yaml.safe_load((folder / "cases.yaml").read_text(encoding="utf-8"))
    expected = yaml.safe_load((folder / "expected.yaml").read_text(encoding="utf-8"))
    return {case["name"]: case for case in cases["cases"]}, cases["upstreams"], expected


def _lines(pairs: list[list[str]]) -> list[HeaderLine]:
    return [(name.lower().encode(), value.encode()) for name, value in pairs]


async def _run(nursery: trio.Nursery, case: dict[str, Any], upstreams: dict[str, Any]) -> Run:
    network = MemoryNetwork()
    answer = upstreams.get(case.get("upstream", ""), {"status": 200, "headers": [], "body": ""})
    further = [line for line in _lines(answer["headers"]) if line[0] != b"content-type"]
    raw = reply(answer["status"], answer["body"].encode(), *further)
    backend = await RawBackend(network, raw).start(nursery)
    small = model_of(backend.port, "general-small", provider_model_id="general-small-instruct")
    large = model_of(
        backend.port,
        "general-large",
        provider_model_id="general-large-instruct",
        base_url=f"'http://llm.example.com:{backend.port}/v1'",
        provider="openai",
        extra_headers="{X-Tenant: parity-corpus}",
        api_key="parity-static-key",
    )
    document = document_of(small, large, default="general-small", routing=ROUTING)
    router = await start_router(nursery, network, document)
    request = case["request"]
    got = await router.ask(
        request.get("body", "").encode(),
        target=request["path"].encode(),
        method=request["method"].encode(),
        lines=[*_lines(request["headers"]), (b"x-request-id", f"parity-{case['name']}".encode())],
    )
    if not backend.seen:
        return Run(got, [], b"", b"")
    [(head, body)] = backend.seen
    return Run(got, head.lines, head.target, body)


@pytest.mark.parametrize("name", [*SERVED, *STATUS_AND_HEADERS_SERVED])
async def test_case_is_served_as_recorded(
    name: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Upstream headers and body, status, response headers in their order, response body."""
    cases, upstreams, expected = _corpus()
    case, wanted = cases[name], expected[name]

    run = await _run(nursery, case, upstreams)

    response = wanted["response"]
    assert run.got.head is not None
    assert run.got.status == response["status"]
    shown = [line for line in run.got.head.lines if line[0] != b"content-length"]
    assert _without_volatile(shown) == _without_volatile(
        [line for line in _lines(response["headers"]) if line[0] != b"content-length"]
        if name in SERVED
        # No error is re-encoded, so its content type stays where the backend had it.
        else [(b"content-type", b"application/json"), *_lines(response["headers"])[:-1]]
    )
    assert run.got.line(b"content-length") == b"%d" % len(run.got.body)
    if name in SERVED:
        canned = upstreams["chat-ok"]["body"].encode()
        is_routed = "upstream" in wanted
        assert run.got.body == (canned if is_routed else response["body"].encode())
    _check_upstream(run, wanted)


def _check_upstream(run: Run, wanted: dict[str, Any]) -> None:
    if "upstream" not in wanted:
        assert run.head_lines == []
        return
    lines = _lines(wanted["upstream"]["headers"])
    pseudo = dict(line for line in lines if line[0][:1] == b":")
    # The records hold an empty accept-encoding where `identity` is meant.
    plain = [
        (name, b"identity" if name == b"accept-encoding" else value)
        for name, value in lines
        if name[:1] != b":"
    ]
    assert run.target == pseudo[b":path"]
    assert run.head_lines[0][0] == b"host"
    assert sorted(run.head_lines[1:]) == sorted(plain)
    assert run.body == wanted["upstream"]["body"].encode()


def _without_volatile(lines: list[HeaderLine]) -> list[HeaderLine]:
    return [(name, b"" if name == b"x-vsr-routing-latency-ms" else value) for name, value in lines]


async def test_models_list_has_the_recorded_members(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Of `models-list` all but the entry of the second recipe, which needs entrypoints."""
    cases, upstreams, expected = _corpus()
    recorded = yaml.safe_load(expected["models-list"]["response"]["body"])["data"][:1]

    run = await _run(nursery, cases["models-list"], upstreams)

    assert run.got.head is not None
    shown = run.got.json()["data"]
    assert isinstance(shown, list)
    assert [{**entry, "created": 0} for entry in shown] == recorded
    assert [list(entry) for entry in shown] == [list(entry) for entry in recorded]
    assert run.got.head.lines == [
        (b"content-type", b"application/json"),
        (b"x-vsr-config-version", b"1"),
        (b"content-length", b"%d" % len(run.got.body)),
    ]
