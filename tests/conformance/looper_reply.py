"""Scripted replies of a looper fixture as the responses that a backend sends."""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from tests.conformance.looper_case import Fields

_EVENT_STREAM = "text/event-stream"
_JSON = "application/json"


@attrs.frozen
class Response:
    """What a scripted server answers."""

    status: int
    content_type: str
    pieces: tuple[bytes, ...]
    """The body; sent as one piece of chunked coding each, where there are several."""
    delay_s: float = 0.0
    is_reset: bool = False
    """Close the connection in place of an answer."""


def reply_of(reply: Fields, model: str) -> Response:
    """Return a backend's response for a scripted reply of `model`."""
    return attrs.evolve(_undelayed(reply, model), delay_s=reply.get("delay_ms", 0) / 1000)


def verifier_reply_of(reply: Fields) -> Response:
    """Return the verifier's response for a scripted reply."""
    if set(reply) == {"status"}:
        return Response(reply["status"], _JSON, (b"{}",))
    if set(reply) == {"raw"}:
        return Response(200, _JSON, (_text(reply["raw"]),))
    return Response(200, _JSON, (_text(reply),))


def refusal_of(message: str) -> Response:
    """Return the answer to a call that has no scripted reply."""
    return Response(500, _JSON, (_text({"error": {"message": message}}),))


def _undelayed(reply: Fields, model: str) -> Response:
    if reply.get("reset"):
        return Response(0, "", (), is_reset=True)
    if "sse" in reply:
        pieces = tuple(b"data: " + _text(item) + b"\n\n" for item in reply["sse"])
        return Response(200, _EVENT_STREAM, pieces)
    if "raw" in reply:
        raw = _text(reply["raw"])
        is_stream = raw.lstrip().startswith((b"data:", b"event:", b":"))
        return Response(200, _EVENT_STREAM if is_stream else _JSON, (raw,))
    if "status" in reply and "content" not in reply:
        body = reply.get("body", "")
        content_type = "text/plain" if isinstance(body, str) and body[:1] != "{" else _JSON
        return Response(reply["status"], content_type, (_text(body),))
    return Response(reply.get("status", 200), _JSON, (_text(_completion(reply, model)),))


def _completion(reply: Fields, model: str) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": 0, "message": _message(reply)}
    default = "tool_calls" if reply.get("tool_calls") else "stop"
    choice["finish_reason"] = reply.get("finish_reason", default)
    if "logprobs" in reply:
        choice["logprobs"] = {"content": [_token(entry) for entry in reply["logprobs"]]}
    completion = {
        "id": f"chatcmpl-{model}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": f"upstream-{model}",
        "choices": [choice],
    }
    if "usage" in reply:
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        completion["usage"] = dict(zip(names, reply["usage"], strict=True))
    return completion


def _message(reply: Fields) -> Mapping[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.get("content")}
    if "reasoning" in reply:
        message["reasoning_content"] = reply["reasoning"]
    if reply.get("tool_calls"):
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in reply["tool_calls"]
        ]
    return message


def _token(entry: list[Any]) -> dict[str, Any]:
    token, logprob, *rest = entry
    alternatives = [{"token": each, "logprob": number} for each, number in (*rest, ())[0]]
    return {"token": token, "logprob": logprob, "top_logprobs": alternatives}


def _text(value: object) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode()
