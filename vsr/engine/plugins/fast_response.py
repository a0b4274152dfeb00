"""Plugin `fast_response`: a fixed answer without a backend."""

import re
from typing import ClassVar

import attrs
import msgspec

from vsr.codec.edits import Draft
from vsr.codec.strict_json import decode
from vsr.engine.plugins.plugin import Capability, Contribution, Plugin, Site, Stage
from vsr.registry import Extension
from vsr.resources.plugin import FastResponse
from vsr.routing.effect import HeaderEdit, ImmediateResponse

_PIECE = re.compile(r"\s*\S+\s*")
"""A word with the white space behind it, and the first with that in front of it."""

_NO_USAGE = b'{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}'
_DONE = b"data: [DONE]\n\n"


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


_STREAM_OPTIONS = msgspec.json.Decoder(_StreamOptions)


@attrs.frozen
class FastResponsePlugin:
    """Answers with the message, whole or as an event stream, as the client asked."""

    resource: ClassVar[type[object]] = FastResponse
    stage: ClassVar[Stage] = Stage.ANSWER
    capability: ClassVar[Capability] = Capability.REQUEST_SAFE

    config: FastResponse
    site: Site = attrs.field(repr=False)
    _buffered_edits: tuple[HeaderEdit, ...] = attrs.field(init=False, repr=False)
    _streamed_edits: tuple[HeaderEdit, ...] = attrs.field(init=False, repr=False)
    _choices: bytes = attrs.field(init=False, repr=False)
    """The end of the whole answer, behind the model."""
    _deltas: tuple[bytes, ...] = attrs.field(init=False, repr=False)
    """The end of each event, behind the model."""

    @_buffered_edits.default
    def _list_buffered_edits(self) -> tuple[HeaderEdit, ...]:
        return self._edits(b"application/json")

    @_streamed_edits.default
    def _list_streamed_edits(self) -> tuple[HeaderEdit, ...]:
        return self._edits(b"text/event-stream")

    @_choices.default
    def _render_choices(self) -> bytes:
        content = msgspec.json.encode(self.config.message)
        message = b'{"role":"assistant","content":%b}' % content
        choice = b'{"index":0,"message":%b,"finish_reason":"stop"}' % message
        return b'"choices":[%b],"usage":%b}' % (choice, _NO_USAGE)

    @_deltas.default
    def _render_deltas(self) -> tuple[bytes, ...]:
        pieces = _PIECE.findall(self.config.message)
        contents = [b'"content":%b' % msgspec.json.encode(piece) for piece in pieces]
        contents[:1] = [b'"role":"assistant",' + content for content in contents[:1]]
        return (*(_delta(content, b"null") for content in contents), _delta(b"", b'"stop"'))

    @property
    def contribution(self) -> Contribution:
        """Return the answer."""
        return Contribution(answer=self.answer)

    def answer(self, draft: Draft, unix_s: int) -> ImmediateResponse:
        """Return the answer to `draft`; a stream ends with usage if the client asked for it."""
        start = b'{"id":"chatcmpl-fast-%d","object":"chat.completion' % unix_s
        model = b'","created":%d,"model":"router",' % unix_s
        if draft.raw("stream") != b"true":
            body = b"".join((start, model, self._choices))
            return ImmediateResponse(200, self._buffered_edits, body)
        deltas = self._deltas
        if _wants_usage(draft):
            deltas = (*deltas, b'"choices":[],"usage":%b}\n\n' % _NO_USAGE)
        event = b"".join((b"data: ", start, b".chunk", model))
        body = b"".join((event, event.join(deltas), _DONE))
        return ImmediateResponse(200, self._streamed_edits, body)

    def _edits(self, content_type: bytes) -> tuple[HeaderEdit, ...]:
        return (
            HeaderEdit(b"content-type", content_type),
            HeaderEdit(b"x-vsr-selected-decision", self.site.decision.encode()),
            HeaderEdit(b"x-vsr-fast-response", b"true"),
            *self.site.keystone(b"fast_response"),
            HeaderEdit(b"x-vsr-selected-recipe", self.site.recipe.encode()),
        )


def _delta(delta: bytes, finish_reason: bytes) -> bytes:
    return b'"choices":[{"index":0,"delta":{%b},"finish_reason":%b}]}\n\n' % (delta, finish_reason)


def _wants_usage(draft: Draft) -> bool:
    options = draft.value("stream_options")
    if options is None:
        return False
    try:
        return decode(_STREAM_OPTIONS, options).include_usage
    except msgspec.ValidationError:
        return False  # it is null, or not what OpenAI's API knows


FAST_RESPONSE = Extension[Plugin](name="fast_response", config=FastResponsePlugin)
