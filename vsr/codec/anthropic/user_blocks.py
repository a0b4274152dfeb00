"""Content of Anthropic user turns as chat messages."""

from collections.abc import Mapping

import msgspec

from vsr.codec.anthropic.json_value import TRUE, JsonValue, encode, is_text, joined
from vsr.codec.anthropic.protocol_warning import Reason, WarningLog
from vsr.codec.chat_messages import read_entries, read_members, read_string
from vsr.codec.strict_json import NULL

Members = Mapping[str, msgspec.Raw]

_NO_TEXT = msgspec.Raw(b'""')
_DATA_URI = msgspec.Raw(b'"data:"')
_BASE64 = msgspec.Raw(b'";base64,"')
_FILE_ID = msgspec.Raw(b'"file_id:"')
_RECORDED = frozenset({"document", "thinking", "redacted_thinking", "server_tool_use"})
_LINE_BREAK = rb"\n"
_DROPPED_PARTS = {
    "image": Reason.TOOL_RESULT_IMAGE_DROPPED,
    "document": Reason.TOOL_RESULT_DOCUMENT_DROPPED,
}


class UserTurn:
    """Builds the chat messages of one user turn with content blocks.

    Text and images gather in one user message; a tool result ends it and is a message of its own.
    """

    def __init__(self, log: WarningLog, openai_log: WarningLog) -> None:
        self._log = log
        self._openai_log = openai_log
        self._parts: list[JsonValue] = []
        self._messages: list[msgspec.Raw] = []

    def add(self, block: msgspec.Raw, field: str) -> None:
        """Add a content block; `field` is its path."""
        members = read_members(block) or {}
        kind = read_string(members.get("type", NULL))
        if kind == "text":
            if is_text(members.get("text")):
                self._parts.append({"type": "text", "text": members["text"]})
        elif kind == "image":
            url = _image_url(members, f"{field}.source", self._log)
            if url is not None:
                self._parts.append({"type": "image_url", "image_url": {"url": url}})
        elif kind == "tool_result":
            self._add_result(members, field)
        elif kind in _RECORDED:
            self._openai_log.lossy(Reason.UNSUPPORTED_BLOCK_TYPE, f"{field}.type")
        else:
            self._log.lossy(Reason.UNSUPPORTED_BLOCK_TYPE, f"{field}.type")

    def finish(self) -> list[msgspec.Raw]:
        """Return the messages."""
        self._flush()
        return self._messages

    def _flush(self) -> None:
        if self._parts:
            self._messages.append(encode({"role": "user", "content": self._parts}))
            self._parts = []

    def _add_result(self, members: Members, field: str) -> None:
        tool_use_id = members.get("tool_use_id")
        if tool_use_id is None or not is_text(tool_use_id):
            self._log.error(Reason.MISSING_TOOL_USE_ID, f"{field}.tool_use_id")
            return
        if members.get("is_error") == TRUE:
            self._log.info(Reason.TOOL_RESULT_IS_ERROR, f"{field}.is_error")
        text = _result_text(members.get("content", NULL), f"{field}.content", self._log)
        self._flush()
        # Content is there even if empty: without it the message breaks the chat API's schema.
        self._messages.append(
            encode({"role": "tool", "tool_call_id": tool_use_id, "content": text})
        )


def _result_text(content: msgspec.Raw, field: str, log: WarningLog) -> msgspec.Raw:
    if is_text(content):
        return content
    texts = []
    for part in read_entries(content) or ():
        members = read_members(part) or {}
        kind = read_string(members.get("type", NULL)) or ""
        if kind == "text":
            texts += [members["text"]] if is_text(members.get("text")) else []
        else:
            log.lossy(_DROPPED_PARTS.get(kind, Reason.UNSUPPORTED_TOOL_RESULT_PART), field)
    return joined(texts, _LINE_BREAK) if texts else _NO_TEXT


def _image_url(members: Members, field: str, log: WarningLog) -> msgspec.Raw | None:
    source = read_members(members.get("source", NULL))
    if source is None:
        log.error(Reason.MISSING_SOURCE, field)
        return None
    match read_string(source.get("type", NULL)):
        case "base64":
            media_type, data = source.get("media_type", NULL), source.get("data", NULL)
            if is_text(media_type) and is_text(data):
                return joined((_DATA_URI, media_type, _BASE64, data))
            log.error(Reason.INCOMPLETE_BASE64, field)
        case "url":
            if is_text(source.get("url")):
                return source["url"]
            log.error(Reason.MISSING_URL, field)
        case "file":
            if is_text(source.get("file_id")):
                log.info(Reason.IMAGE_FILE_ID_UNRESOLVED, field)
                return joined((_FILE_ID, source["file_id"]))
            log.error(Reason.MISSING_FILE_ID, field)
        case _:
            log.lossy(Reason.UNSUPPORTED_IMAGE_SOURCE, field)
    return None
