"""A buffered chat completion as an Anthropic answer.

Source: the reference's rules "Buffered responses", and its parity record
`anthropic-messages-ingress` where they differ.
"""

from collections.abc import Mapping

import msgspec

from vsr.codec.anthropic.chat_parts import argument_object, text_block, text_literals
from vsr.codec.anthropic.json_value import (
    JsonValue,
    UntranslatableResponse,
    is_text,
    joined,
)
from vsr.codec.anthropic.protocol_warning import ProtocolWarning, Reason, WarningLog
from vsr.codec.anthropic.response_to_chat import anthropic_response_to_chat
from vsr.codec.chat_messages import read_entries, read_members, read_string
from vsr.codec.envelope import open_envelope
from vsr.codec.stream_usage import ReportedUsage, read_reported
from vsr.codec.strict_json import NULL
from vsr.errors import InvalidRequest

Members = Mapping[str, msgspec.Raw]

_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_CHOICE = "choices[0].message"


class MessageTranslation(msgspec.Struct, frozen=True):
    """A chat completion as an Anthropic message."""

    body: bytes
    warnings: tuple[ProtocolWarning, ...]


def chat_response_to_anthropic(
    body: bytes, *, model: str | None = None, original: bytes | None = None
) -> MessageTranslation:
    """Translate a completion's first choice.

    Args:
        body: of an answer with a status of success.
        model: shown in place of the backend's.
        original: the Anthropic answer that `body` was made of, if any. As long as nobody changed
            the choices, the client gets it as it is, with its signatures and citations.

    Raises:
        UntranslatableResponse: `body` is no completion, or calls a tool with no JSON object.
    """
    try:
        if original is not None and _has_choices_of(body, original):
            return MessageTranslation(_renamed(original, model), ())
        log = WarningLog()
        message = _message(body, model, log)
        return MessageTranslation(msgspec.json.encode(message), tuple(log.warnings))
    except InvalidRequest as error:  # the strict decoder's name for any malformed JSON
        raise UntranslatableResponse("the backend's answer is not JSON") from error


def _has_choices_of(body: bytes, original: bytes) -> bool:
    chat = read_members(body) or {}
    made = read_members(anthropic_response_to_chat(original, created=0)) or {}
    return chat.get("choices") == made.get("choices")


def _renamed(original: bytes, model: str | None) -> bytes:
    if model is None:
        return original
    return open_envelope(original).spliced({"model": msgspec.json.encode(model)})


def _message(body: bytes, model: str | None, log: WarningLog) -> JsonValue:
    members = read_members(body) or {}
    choices = read_entries(members.get("choices", NULL))
    choice = read_members(choices[0]) if choices else None
    message = read_members((choice or {}).get("message", NULL))
    if choice is None or message is None:
        raise UntranslatableResponse("the backend's answer is not a completion")
    finish_reason = read_string(choice.get("finish_reason", NULL)) or ""
    calls = _tool_uses(message, log, is_cut_off=finish_reason == "length")
    return {
        "id": members.get("id", NULL),
        "type": "message",
        "role": "assistant",
        "model": members.get("model", NULL) if model is None else model,
        "content": [*_thinking(message), *_text(message, log), *calls],
        "stop_reason": stop_reason_for(finish_reason, log, calls_tool=bool(calls)),
        "stop_sequence": None,
        "usage": _usage(read_reported(members.get("usage", NULL)) or ReportedUsage(), log),
        "container": None,
        "stop_details": None,
    }


def _thinking(message: Members) -> list[JsonValue]:
    thought = message.get("reasoning_content")
    if thought is None or not is_text(thought):
        return []
    return [{"signature": "", "thinking": thought, "type": "thinking"}]


def _text(message: Members, log: WarningLog) -> list[JsonValue]:
    refusal = message.get("refusal")
    if refusal is not None and is_text(refusal):
        return [text_block(refusal)]
    texts = text_literals(message.get("content", NULL), f"{_CHOICE}.content", log)
    return [text_block(joined(texts))] if texts else []


def _tool_uses(message: Members, log: WarningLog, *, is_cut_off: bool) -> list[JsonValue]:
    """Return the tool calls; one that the token limit cut off in its arguments is left out."""
    calls: list[JsonValue] = []
    for at, call in enumerate(read_entries(message.get("tool_calls", NULL)) or ()):
        members = read_members(call) or {}
        function = read_members(members.get("function", NULL)) or {}
        given = argument_object(function.get("arguments", NULL))
        is_whole = is_text(members.get("id")) and is_text(function.get("name"))
        if given is not None and is_whole:
            calls.append(
                {
                    "id": members["id"],
                    "input": given,
                    "name": function["name"],
                    "type": "tool_use",
                }
            )
        elif is_cut_off:
            log.lossy(Reason.INCOMPLETE_TOOL_USE, f"{_CHOICE}.tool_calls[{at}]")
        else:
            raise UntranslatableResponse("the backend's answer has a malformed tool call")
    return calls


def stop_reason_for(finish_reason: str, log: WarningLog, *, calls_tool: bool) -> str:
    """Return the stop reason for a finish reason; an unknown one is an ordinary end."""
    if finish_reason not in _STOP_REASONS:
        log.info(Reason.STOP_REASON_COERCED, "finish_reason")
    stop_reason = _STOP_REASONS.get(finish_reason, "end_turn")
    # Some backends stop for a tool and say `stop`; a client would not run the tool then.
    return "tool_use" if calls_tool and stop_reason == "end_turn" else stop_reason


def _usage(usage: ReportedUsage, log: WarningLog) -> JsonValue:
    """Return the usage; the Messages API has no form for unknown counts, so those are 0."""
    cached, cache_written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    prompt = usage.prompt_tokens
    if not cached and not cache_written:
        log.info(Reason.CACHE_FIELDS_ABSENT, "usage.cache")
    return {
        "input_tokens": 0 if prompt is None else prompt - cached - cache_written,
        "output_tokens": usage.completion_tokens or 0,
        "cache_creation_input_tokens": cache_written,
        "cache_read_input_tokens": cached,
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        "inference_geo": "global",
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens or 0},
        "server_tool_use": {"web_fetch_requests": 0, "web_search_requests": 0},
        "service_tier": "standard",
    }
