"""A tool call that a model wrote into its text, between tags."""

import re

import msgspec

from vsr.codec.backend_json import as_raw, list_at, object_at, object_in, read_odd, string_at
from vsr.codec.chat_reply import ToolCall
from vsr.codec.reply_forms import read_completion
from vsr.codec.strict_json import NULL

_OPENING = re.compile(r"<tool_call>\s*+(?={)")
_CLOSING = re.compile(r"(?<=})\s*+</tool_call>")
_ANY = msgspec.json.Decoder(object)


def find_tagged_call(content: str, *, fresh_id: str) -> ToolCall | None:
    """Return the first tagged call in a text; None if there is none, or it cannot be read.

    Arguments that are no JSON become the member `input` of an object.

    Source: looper-algorithms 4.4.
    """
    opening = _OPENING.search(content)
    closing = _CLOSING.search(content, opening.end()) if opening else None
    if opening is None or closing is None:
        return None
    text = content[opening.end() : closing.start()].encode("utf-8", "replace")
    # What is inside a member is not looked at before, so a whole one is decoded.
    members = object_in(text) if read_odd(_ANY, text) is not None else {}
    name = string_at(members, "name")
    if name is None or not name.strip():
        return None
    return ToolCall(fresh_id, name, _arguments(members.get("arguments")))


def with_tagged_call(body: bytes, call: ToolCall) -> bytes:
    """Return a completion whose first choice makes the call and has no text.

    Raises:
        GraphFailed: `body` is no JSON object.
    """
    members = read_completion(body)
    choices = list_at(members, "choices")
    if not choices:
        return body
    choice = object_in(choices[0])
    function = {"name": call.name, "arguments": call.arguments}
    message = {
        **object_at(choice, "message"),
        "content": "",
        "tool_calls": [{"id": call.id, "type": "function", "function": function}],
    }
    choices[0] = as_raw({**choice, "message": message, "finish_reason": "tool_calls"})
    return msgspec.json.encode({**members, "choices": choices})


def _arguments(raw: msgspec.Raw | None) -> str:
    if raw is None or raw == NULL:
        return "{}"
    text = string_at({"arguments": raw}, "arguments")
    if text is None:
        return bytes(raw).decode()
    if _is_json(text):
        return text
    return msgspec.json.encode({"input": text}).decode()


def _is_json(text: str) -> bool:
    try:
        _ANY.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
