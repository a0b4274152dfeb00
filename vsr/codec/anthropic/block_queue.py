"""Content blocks of an Anthropic stream, written one after the other.

A chat stream may mix the pieces of several tool calls, the Messages API has one block open at a
time. So the block in front is written as it comes, and those behind it wait for its end.
"""

from collections import deque
from enum import StrEnum

import msgspec

from vsr.codec.anthropic.argument_scan import ArgumentScan
from vsr.codec.anthropic.json_value import UntranslatableResponse, is_text
from vsr.codec.chat_messages import read_string
from vsr.codec.strict_json import NULL

MAX_HELD_BYTES = 1 << 20
"""Of the pieces that wait; as much as one event may have."""


class BlockKind(StrEnum):
    """What a block holds."""

    TEXT = "text"
    THINKING = "thinking"
    TOOL_USE = "tool_use"


class ContentBlock(msgspec.Struct):
    """A block that has not ended, or a call that has."""

    kind: BlockKind
    call_id: msgspec.Raw = NULL
    name: msgspec.Raw = NULL
    scan: ArgumentScan = msgspec.field(default_factory=ArgumentScan)
    """Of a call's arguments."""
    held: list[bytes] = []
    """Pieces that wait, as JSON strings."""
    delta_head: bytes = b""
    """In front of each piece; empty until the block is written."""

    @property
    def is_whole(self) -> bool:
        """Return whether nothing more can belong to it once another block has begun."""
        return self.kind is not BlockKind.TOOL_USE or self.scan.is_whole

    @property
    def is_named(self) -> bool:
        """Return whether it can be begun."""
        return self.kind is not BlockKind.TOOL_USE or (is_text(self.call_id) and is_text(self.name))


_EMPTY = {
    BlockKind.TEXT: b'{"type":"text","text":""}',
    BlockKind.THINKING: b'{"type":"thinking","thinking":"","signature":""}',
}
_DELTA = {
    BlockKind.TEXT: b'{"type":"text_delta","text":',
    BlockKind.THINKING: b'{"type":"thinking_delta","thinking":',
    BlockKind.TOOL_USE: b'{"type":"input_json_delta","partial_json":',
}
_DELTA_END = b"}}\n\n"


def _event(name: bytes, index: int) -> bytes:
    return b'event: %b\ndata: {"type":"%b","index":%d' % (name, name, index)


class BlockQueue:
    """Writes the events of blocks, and holds what is not their turn."""

    def __init__(self) -> None:
        self.has_begun = False
        """A block was added, if not written."""
        self._blocks: deque[ContentBlock] = deque()
        self._index = 0
        """Of the block in front."""
        self._held_bytes = 0
        self._written: list[bytes] = []

    def add_text(self, kind: BlockKind, piece: msgspec.Raw) -> None:
        """Add a piece, a JSON string, of text or thinking.

        Raises:
            UntranslatableResponse: too much would have to wait.
        """
        last = self._blocks[-1] if self._blocks else None
        if last is None or last.kind is not kind:
            last = self.begin(ContentBlock(kind))
            self._advance()
        self._add_piece(last, piece)

    def begin(self, block: ContentBlock) -> ContentBlock:
        """Put a block behind the others; `add_arguments` writes a call's."""
        self.has_begun = True
        self._blocks.append(block)
        return block

    def add_arguments(self, call: ContentBlock, piece: msgspec.Raw) -> None:
        """Add a piece, a JSON string that may be empty, of a call's arguments.

        What comes behind their end is dropped: it can only be white space, or break them.

        Raises:
            UntranslatableResponse: too much would have to wait.
        """
        if is_text(piece) and not call.scan.is_whole:
            call.scan.feed(read_string(piece) or "")
            self._add_piece(call, piece)
        self._advance()

    def take(self) -> bytes:
        """Return the events written since the last call."""
        written = b"".join(self._written)
        self._written.clear()
        return written

    def end(self, *, is_cut_off: bool) -> None:
        """Write what waits, and end each block.

        Args:
            is_cut_off: by the token limit, so that a call may lack its end.

        Raises:
            UntranslatableResponse: a call has no id, no name or no JSON object.
        """
        while self._blocks:
            block = self._blocks[0]
            is_broken = block.scan.has_begun and not block.scan.is_whole
            if not block.is_named and is_cut_off:
                self._blocks.popleft()
            elif not block.is_named or (is_broken and not is_cut_off):
                raise UntranslatableResponse("the backend's answer has a malformed tool call")
            else:
                self._write_start(block)
                self._write_stop()

    def _add_piece(self, block: ContentBlock, piece: msgspec.Raw) -> None:
        if block.delta_head:
            self._written += (block.delta_head, bytes(piece), _DELTA_END)
            return
        self._held_bytes += len(piece)
        if self._held_bytes > MAX_HELD_BYTES:
            raise UntranslatableResponse("the backend's answer mixes too much of several parts")
        block.held.append(bytes(piece))

    def _advance(self) -> None:
        """Begin the block in front, and end it if it is whole and another one follows."""
        while self._blocks and self._blocks[0].is_named:
            self._write_start(self._blocks[0])
            if len(self._blocks) == 1 or not self._blocks[0].is_whole:
                return
            self._write_stop()

    def _write_start(self, block: ContentBlock) -> None:
        if block.delta_head:
            return
        empty = _EMPTY.get(block.kind) or (
            b'{"type":"tool_use","id":' + block.call_id + b',"name":' + block.name + b',"input":{}}'
        )
        start = _event(b"content_block_start", self._index)
        self._written.append(start + b',"content_block":' + empty + b"}\n\n")
        delta = _event(b"content_block_delta", self._index)
        block.delta_head = delta + b',"delta":' + _DELTA[block.kind]
        for piece in block.held:
            self._held_bytes -= len(piece)
            self._written += (block.delta_head, piece, _DELTA_END)
        block.held = []

    def _write_stop(self) -> None:
        self._blocks.popleft()
        self._written.append(_event(b"content_block_stop", self._index) + b"}\n\n")
        self._index += 1
