"""Session fixtures, driven phase by phase: one conversation per case, one effect per step."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import yaml

from tests.conformance.matching import Matching
from tests.fakes.graph import FakeTasks
from vsr.codec.sse import SseDecoder
from vsr.compose.generation import Parts, build_generation
from vsr.config.report import Report
from vsr.config.serving import Gateway
from vsr.config.source import check_bytes
from vsr.errors import ConfigRejected
from vsr.headers import Headers
from vsr.network.memory import MemoryNetwork
from vsr.routing.effect import Effect, HeaderEdit
from vsr.routing.engine import Engine
from vsr.routing.request import Request
from vsr.routing.session import Session

Fields = Mapping[str, Any]
_LEFT_OUT = {("services", "response_api"), ("router", "clear_route_cache")}


@attrs.frozen
class PhaseResult:
    """What one case of a fixture came to."""

    name: str
    differences: tuple[str, ...] = ()
    refusal: str = ""
    """Why the case's document is not served; then nothing was run."""


def read_cases(path: Path) -> Iterator[tuple[str, Fields]]:
    """Yield name and content of every session case in a fixture; one of another kind has none."""
    fixture = yaml.safe_load(path.read_text(encoding="utf-8"))
    if fixture["kind"] == "session":
        for case in fixture.get("cases") or [{"name": ""}]:
            yield f"{fixture['id']} {case['name']}".strip(), fixture | case


async def run_case(name: str, case: Fields) -> PhaseResult:
    """Return what a case comes to."""
    document = yaml.safe_dump(_served(case["config"])).encode()
    try:
        snapshot = check_bytes(document, {}, Report(name), gateway=Gateway.EXTPROC).snapshot
        engine = build_generation(Parts.default(MemoryNetwork()), snapshot, 1).engine
    except ConfigRejected as error:
        return PhaseResult(name, refusal=str(error.problems[0]))
    matching = Matching()
    found: list[str] = []
    for session in case.get("sessions") or [{"steps": case["steps"]}]:
        conversation = _Conversation(engine, matching)
        for at, step in enumerate(session["steps"]):
            problems = await conversation.take(step)
            if problems:
                found += (f"step {at + 1} {problem}" for problem in problems)
                break  # what follows would only repeat it
    return PhaseResult(name, tuple(found))


def _served(config: Fields) -> Fields:
    """Return the document without what is not served, and does not matter to most cases."""
    blocks = {
        name: {key: value for key, value in block.items() if (name, key) not in _LEFT_OUT}
        for name, block in config.get("global", {}).items()
    }
    return {**config, "global": blocks} if blocks else config


@attrs.define
class _Conversation:
    """One session, and the request that it is about."""

    engine: Engine
    matching: Matching
    session: Session | None = None
    request: Request | None = None

    async def take(self, step: Fields) -> list[str]:
        """Make the step's call; return how its effect differs from what is expected."""
        [(phase, sent)] = [item for item in step["send"].items() if item[0] != "protocol"]
        try:
            effect = await self._call(phase, sent)
        except NotImplementedError as error:
            return [str(error)]
        return list(_differences(self.matching, phase, effect, step["expect"]))

    async def _call(self, phase: str, sent: Fields) -> Effect:
        if phase == "request_headers":
            return self._open(sent)
        assert self.session is not None
        assert self.request is not None
        if phase == "response_headers":
            lines = [(name.encode(), value.encode()) for name, value in sent.items()]
            headers = Headers([line for line in lines if line[0] != b":status"])
            return self.session.response_headers(int(sent[":status"]), headers)
        data = _bytes_of(sent)
        is_last = sent.get("end_of_stream", True)
        if phase == "response_body":
            return await self.session.response_body(data, is_last=is_last)
        if not is_last:
            raise NotImplementedError("bodies of requests come whole")
        self.request.body = data
        return await self.session.request_body()

    def _open(self, sent: Fields) -> Effect:
        fields = {name.lower().encode(): str(value).encode() for name, value in sent.items()}
        self.request = Request(
            fields[b":method"],
            fields[b":path"],
            fields.get(b":authority", b"router.local"),
            b"http",
            Headers([line for line in fields.items() if line[0][:1] != b":"]),
            b"",
            fields.get(b"x-request-id", b"").decode(),
        )
        self.session = self.engine.open(self.request, FakeTasks())
        return self.session.request_headers()


def _bytes_of(sent: Fields) -> bytes:
    if "sse" in sent:
        texts = [it if isinstance(it, str) else json.dumps(it) for it in sent["sse"]]
        return "".join(f"data: {text}\n\n" for text in texts).encode()
    text: str = sent["text"] if "text" in sent else json.dumps(sent["json"])
    return text.encode()


def _differences(matching: Matching, phase: str, effect: Effect, wanted: Fields) -> Iterator[str]:
    immediate = effect.immediate
    reply = phase if immediate is None else "immediate"
    if reply != wanted["reply"]:
        yield f"reply: {reply}, not {wanted['reply']}"
        return
    edits = effect.all_edits() if immediate is None else immediate.edits
    body = effect.body if immediate is None else immediate.body
    if immediate is not None:
        yield from matching.differences(wanted["status"], immediate.status, "status")
    yield from _header_differences(matching, effect, edits, body, wanted)
    for name, got in (
        ("clear_route_cache", effect.clear_route_cache),
        ("response_body_mode", "STREAMED" if effect.stream_response else "none"),
    ):
        if name in wanted:
            yield from matching.differences(wanted[name], got, name)
    if "body" in wanted:
        yield from _body_differences(matching, body, wanted["body"])


def _header_differences(
    matching: Matching,
    effect: Effect,
    edits: tuple[HeaderEdit, ...],
    body: bytes | None,
    wanted: Fields,
) -> Iterator[str]:
    sets = {edit.name.decode(): edit.value.decode() for edit in edits}
    for name, value in (wanted.get("set_headers") or wanted.get("headers") or {}).items():
        is_length = value == {"$length_of": "body"}
        expected = str(len(body or b"")) if is_length else value
        yield from matching.differences(expected, sets.get(name.lower()), f"header {name}")
    order = wanted.get("set_headers_order", [])
    if [name for name in sets if name in order] != order:
        yield f"order of headers: {[name for name in sets if name in order]}, not {order}"
    for name in (*wanted.get("not_set", ()), *wanted.get("headers_absent", ())):
        if name in sets:
            yield f"header {name} is set"
    for name in wanted.get("remove_headers", ()):
        if name.encode() not in effect.removes:
            yield f"header {name} is not removed"


def _body_differences(matching: Matching, body: bytes | None, wanted: Any) -> Iterator[str]:  # noqa: ANN401  # JSON
    if wanted in ("absent", "empty"):
        if body != (None if wanted == "absent" else b""):
            yield f"body: {body!r}, not {wanted}"
    elif body is None:
        yield "body: absent"
    elif "text" in wanted:
        yield from matching.differences(wanted["text"], body.decode(), "body")
    elif "json" in wanted:
        yield from matching.differences(wanted["json"], json.loads(body), "body")
    else:
        events = [event for event in SseDecoder().feed(body) if event.data is not None]
        shown = [{"event": it.event, "data": _event_data(it.data or b"")} for it in events]
        yield from matching.differences(wanted["sse"], shown, "body")


def _event_data(data: bytes) -> object:
    return data.decode() if data == b"[DONE]" else json.loads(data)
