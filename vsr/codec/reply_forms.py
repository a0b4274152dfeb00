"""The answer of a request graph as one chat completion."""

from collections.abc import Mapping

import msgspec

from vsr.codec.backend_json import as_raw, list_at, object_at, object_in
from vsr.codec.chat_reply import ReplyUsage
from vsr.errors import GraphFailed

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Answer(msgspec.Struct, frozen=True):
    """What the client is told, whatever the form.

    Source of every form: looper-algorithms 4.2, 4.4, 6.8, 7.
    """

    id: str
    created: int
    """Unix seconds."""
    model: str
    contents: tuple[str, ...] = ()
    """One per choice; a kept body has choices of its own."""
    usage: ReplyUsage = ReplyUsage()
    extra: Mapping[str, object] = {}
    """More top-level members, JSON-able; of a stream, on its first chunk."""
    shows_usage: bool = False
    """Whether a stream ends with a usage chunk; a single completion always has its usage."""


def render_completion(answer: Answer) -> bytes:
    """Return a completion of the router's own, with a choice for each content."""
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": content},
            "finish_reason": "stop",
        }
        for index, content in enumerate(answer.contents)
    ]
    members = {
        "id": answer.id,
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": choices,
        "usage": answer.usage,
    }
    return msgspec.json.encode({**members, **answer.extra})


def render_kept(answer: Answer, body: bytes, *, first_only: bool = False) -> bytes:
    """Return a backend's completion under the router's id, model and usage.

    All else stays as it came, except that a choice with tool calls says so in its finish reason;
    `first_only`: only the first choice does.

    Raises:
        GraphFailed: `body` is no JSON object.
    """
    members = read_completion(body)
    choices = list_at(members, "choices")
    if choices:
        last = 1 if first_only else len(choices)
        fixed = [_with_finish_reason(choice) for choice in choices[:last]]
        members["choices"] = as_raw([*fixed, *choices[last:]])
    changes = {"id": answer.id, "model": answer.model, "usage": answer.usage}
    return msgspec.json.encode({**members, **changes, **answer.extra})


def read_completion(body: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of a completion that is about to be edited.

    Raises:
        GraphFailed: `body` is no JSON object.
    """
    try:
        return _MEMBERS.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise GraphFailed("failed to parse response: it is no JSON object") from error


def _with_finish_reason(choice: msgspec.Raw) -> msgspec.Raw:
    members = object_in(choice)
    if not list_at(object_at(members, "message"), "tool_calls"):
        return choice
    return as_raw({**members, "finish_reason": "tool_calls"})
