"""Whether the client's answer is the expected one."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from tests.conformance.looper_case import Fields
from tests.conformance.looper_matching import ABSENT, differences, shown
from vsr.codec.sse import SseDecoder

_UNCHECKED = ("latency", "replay-id", "request-id", "trace")
_UNCHECKED_END = "-ms"


@attrs.frozen
class ClientReply:
    """What the client got."""

    status: int
    headers: Mapping[str, str]
    """The first value of every name, in lower case."""
    body: bytes
    how_it_ended: str = "whole"

    @property
    def media_type(self) -> str:
        """Return the content type without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip()

    def json(self) -> Any:  # noqa: ANN401  # JSON
        """Return the body's value, `ABSENT` if it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return ABSENT

    def events(self) -> list[Any]:
        """Return the data of each event: JSON, or the text where it is none."""
        decoder = SseDecoder()
        found = [event.data for event in decoder.feed(self.body)]
        rest = decoder.close()
        values = [_value(data) for data in found if data is not None]
        return [*values, *([f"unfinished: {rest.decode('utf-8', 'replace')}"] if rest else [])]

    def tool_call_ids(self) -> list[str]:
        """Return the ids of the tool calls in the answer, in order."""
        is_stream = self.media_type == "text/event-stream"
        return list(_tool_call_ids(self.events() if is_stream else [self.json()]))


def response_differences(wanted: Fields, reply: ClientReply) -> Iterator[str]:
    """Yield how an answer differs from what a turn expects."""
    if reply.how_it_ended != "whole":
        yield f"response: expected to end whole, got one that ended {reply.how_it_ended}"
    if "status" in wanted and reply.status != wanted["status"]:
        got = f"{reply.status} {shown(reply.body.decode('utf-8', 'replace'))}"
        yield f"response.status: expected {wanted['status']}, got {got}"
    if "content_type" in wanted:
        yield from differences(wanted["content_type"], reply.media_type, "response.content_type")
    yield from _body_differences(wanted, reply)
    if "events" in wanted:
        yield from differences(wanted["events"], reply.events(), "response.events")
    yield from _header_differences(wanted, reply.headers)


def _body_differences(wanted: Fields, reply: ClientReply) -> Iterator[str]:
    body = reply.json()
    if "body" in wanted:
        yield from differences(wanted["body"], body, "response.body")
    members = body if isinstance(body, dict) else {}
    for name in wanted.get("absent") or ():
        if name in members:
            yield f"response.body.{name}: expected nothing, got {shown(members[name])}"
    if "keys" in wanted:
        yield from differences({"$set": wanted["keys"]}, list(members), "response.keys")


def _header_differences(wanted: Fields, headers: Mapping[str, str]) -> Iterator[str]:
    listed = {name.lower(): value for name, value in (wanted.get("headers") or {}).items()}
    for name, value in listed.items():
        yield from differences(value, headers.get(name, ABSENT), f"response.headers.{name}")
    if wanted.get("headers_complete"):
        for name in headers:
            if _is_checked(name) and name not in listed:
                yield f"response.headers.{name}: expected nothing, got {shown(headers[name])}"


def _is_checked(name: str) -> bool:
    if name != "content-type" and not name.startswith("x-vsr-"):
        return False
    return not name.endswith(_UNCHECKED_END) and not any(part in name for part in _UNCHECKED)


def _value(data: bytes) -> Any:  # noqa: ANN401  # JSON
    try:
        return json.loads(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def _tool_call_ids(payloads: Sequence[Any]) -> Iterator[str]:
    for payload in payloads:
        choices = payload.get("choices") if isinstance(payload, dict) else None
        for choice in choices or ():
            message = choice.get("message") or choice.get("delta") or {}
            for call in message.get("tool_calls") or ():
                if call.get("id"):
                    yield call["id"]
