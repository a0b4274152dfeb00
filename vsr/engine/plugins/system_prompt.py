"""Plugin `system_prompt`: the decision's own text in the request's system message."""

import re
from collections.abc import Iterator
from typing import ClassVar

import attrs
import msgspec

from vsr.codec.edits import Changes, Draft
from vsr.codec.envelope import open_envelope
from vsr.codec.strict_json import decode
from vsr.engine.plugins.plugin import Capability, Contribution, Plugin, Site, Stage
from vsr.registry import Extension
from vsr.resources.plugin import SystemPrompt, SystemPromptMode

_BETWEEN = "\n\n"
_OPENING = re.compile(rb"\[[ \t\n\r]*")
_LINE_BREAK = rb"\n"


class _Messages(msgspec.Struct, array_like=True):
    first: msgspec.Raw = msgspec.Raw()


class _Message(msgspec.Struct):
    role: str
    content: msgspec.Raw = msgspec.Raw()


class _Part(msgspec.Struct):
    type: str | None = None
    text: msgspec.Raw = msgspec.Raw()


_MESSAGES = msgspec.json.Decoder(_Messages)
_MESSAGE = msgspec.json.Decoder(_Message)
_PARTS = msgspec.json.Decoder(list[msgspec.Raw])
_PART = msgspec.json.Decoder(_Part)
_TEXT_PARTS = frozenset({None, "", "text", "input_text"})


@attrs.frozen
class SystemPromptPlugin:
    """Puts the text in front of the client's, or in its place.

    Only the first message counts as the system message. All that is the client's keeps its bytes,
    but for a content that is an array of parts: it becomes one string.
    """

    resource: ClassVar[type[object]] = SystemPrompt
    stage: ClassVar[Stage] = Stage.PROMPT
    capability: ClassVar[Capability] = Capability.REQUEST_SAFE

    config: SystemPrompt
    site: Site = attrs.field(repr=False)
    _alone: bytes = attrs.field(init=False, repr=False)
    """The text as a JSON string."""
    _in_front: bytes = attrs.field(init=False, repr=False)
    """The same before more text: without its closing quote."""
    _message: bytes = attrs.field(init=False, repr=False)

    @_alone.default
    def _encode_alone(self) -> bytes:
        return msgspec.json.encode(self.config.prompt)

    @_in_front.default
    def _encode_in_front(self) -> bytes:
        return msgspec.json.encode(self.config.prompt + _BETWEEN)[:-1]

    @_message.default
    def _encode_message(self) -> bytes:
        return b'{"role":"system","content":%b}' % self._alone

    @property
    def contribution(self) -> Contribution:
        """Return the edit of `messages`, unless there is no text."""
        return Contribution(body=self.edit if self.config.prompt else None)

    def edit(self, draft: Draft) -> Changes:
        """Return the change of `messages`.

        Raises:
            InvalidRequest: the system message names one of its members twice.
        """
        value = draft.value("messages")
        if value is None:
            return {}
        try:
            first = bytes(decode(_MESSAGES, value).first)
        except msgspec.ValidationError:
            return {}  # it is no array
        messages = memoryview(value)  # whose slices don't copy
        opening = _OPENING.match(messages)
        start = end = opening.end() if opening is not None else 0
        edited = self._edited(first)
        if edited is None:
            edited = self._message + (b"," if first else b"")
        else:
            end += len(first)
        return {"messages": b"".join((messages[:start], edited, messages[end:]))}

    def _edited(self, first: bytes) -> bytes | None:
        """Return the client's system message with our text, or None if it has none."""
        if not first:
            return None
        try:
            message = decode(_MESSAGE, first)
        except msgspec.ValidationError:
            return None
        if message.role != "system":
            return None
        content = self._alone
        if self.config.mode is SystemPromptMode.INSERT:
            text = _inner_text(bytes(message.content))
            content = self._in_front + text + b'"' if text else content
        return open_envelope(first).spliced({"content": content})


def _inner_text(content: bytes) -> bytes:
    """Return the text of a message's content as it stands in its JSON string, without quotes."""
    if content[:1] == b'"':
        return content[1:-1]
    if content[:1] != b"[":
        return b""
    return _LINE_BREAK.join(_part_texts(content))


def _part_texts(content: bytes) -> Iterator[bytes]:
    for raw in decode(_PARTS, content):
        try:
            part = decode(_PART, raw)
        except msgspec.ValidationError:
            continue
        text = bytes(part.text)
        if part.type in _TEXT_PARTS and text[:1] == b'"':
            yield text[1:-1]


SYSTEM_PROMPT = Extension[Plugin](name="system_prompt", config=SystemPromptPlugin)
