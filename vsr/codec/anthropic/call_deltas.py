"""Which tool call a piece of a chat stream belongs to, also where its index is wrong or missing.

Backends are known to give each call of an answer index 0, to count the pieces instead of the
calls, to leave the index out, and to repeat id and name in each piece or to make up new ids.
"""

import msgspec

from vsr.codec.anthropic.block_queue import BlockKind, BlockQueue, ContentBlock
from vsr.codec.anthropic.json_value import UntranslatableResponse, is_text
from vsr.codec.strict_json import NULL

MAX_CALLS = 1000
MAX_ID_BYTES = 1024
_EMPTY_STRING = msgspec.Raw(b'""')


class FunctionDelta(msgspec.Struct):
    """The function of a piece."""

    name: msgspec.Raw = NULL
    arguments: msgspec.Raw = NULL


class CallDelta(msgspec.Struct):
    """A piece of a tool call."""

    index: int | None = None
    id: msgspec.Raw = NULL
    function: FunctionDelta | None = None


_NO_FUNCTION = FunctionDelta()


class ToolCalls:
    """The calls of one answer."""

    def __init__(self, blocks: BlockQueue) -> None:
        self.count = 0
        self._blocks = blocks
        self._by_index: dict[int, ContentBlock] = {}
        self._by_id: dict[bytes, ContentBlock] = {}
        self._last: ContentBlock | None = None

    def add(self, delta: CallDelta) -> None:
        """Add a piece to its call, or begin one.

        Raises:
            UntranslatableResponse: what it holds is no piece of a call, or too much.
        """
        function = delta.function or _NO_FUNCTION
        if len(delta.id) > MAX_ID_BYTES or len(function.name) > MAX_ID_BYTES:
            raise UntranslatableResponse("the backend's answer has a tool call of too long a name")
        call = self._find(delta, has_name=is_text(function.name)) or self._begin(delta)
        if not is_text(call.call_id) and is_text(delta.id):
            call.call_id = _kept(delta.id)
            self._by_id.setdefault(bytes(delta.id), call)
        if not is_text(call.name):
            call.name = _kept(function.name)
        arguments = function.arguments
        if not is_text(arguments) and arguments not in (NULL, _EMPTY_STRING):
            raise UntranslatableResponse("the backend's answer has a malformed tool call")
        self._blocks.add_arguments(call, arguments)

    def _begin(self, delta: CallDelta) -> ContentBlock:
        if self.count >= MAX_CALLS:
            raise UntranslatableResponse("the backend's answer has too many tool calls")
        self.count += 1
        self._last = self._blocks.begin(ContentBlock(BlockKind.TOOL_USE))
        if delta.index is not None:
            self._by_index[delta.index] = self._last
        return self._last

    def _find(self, delta: CallDelta, *, has_name: bool) -> ContentBlock | None:
        """Return the call that a piece goes on with; None if it begins one."""
        at_index = None if delta.index is None else self._by_index.get(delta.index)
        with_id = self._by_id.get(bytes(delta.id))
        if at_index is not None:
            return self._at_index(at_index, delta, has_name=has_name)
        if has_name and delta.index is not None:
            return None
        if with_id is not None:
            return with_id
        if has_name and is_text(delta.id):
            return None
        may_begin = self._last is None or self._last.scan.is_whole
        return None if may_begin and (has_name or is_text(delta.id)) else self._last

    def _at_index(
        self, call: ContentBlock, delta: CallDelta, *, has_name: bool
    ) -> ContentBlock | None:
        is_other = is_text(delta.id) and is_text(call.call_id) and delta.id != call.call_id
        if has_name and (is_other or (call.scan.is_whole and not is_text(delta.id))):
            return None
        if call.scan.is_whole and not has_name and delta.id != call.call_id:
            return self._last
        return call


def _kept(literal: msgspec.Raw) -> msgspec.Raw:
    """Return a copy that does not hold on to the event it stood in."""
    return msgspec.Raw(bytes(literal))
