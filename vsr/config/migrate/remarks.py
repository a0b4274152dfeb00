"""The comments and blank lines of a YAML text, each with where it stands."""

import bisect
from collections.abc import Iterator

import msgspec
import yaml

_OPENING = (yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken)
_CLOSING = (yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)


class Remark(msgspec.Struct, frozen=True):
    """A comment, or a blank line."""

    text: str
    """From the `#` on; empty for a blank line."""
    line: int
    """0-based."""
    column: int
    """Of the `#`."""
    gap: int
    """Spaces between what else is on the line and the `#`; -1 if it has the line to itself."""
    is_inside: bool
    """Whether it stands within a flow collection or in the header of a block scalar."""


def remarks(text: str) -> list[Remark]:
    """Return every comment and blank line of `text`, which is valid YAML, from top to bottom."""
    starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
    found: list[Remark] = []
    depth = 0
    end = 0
    for token in yaml.scan(text, Loader=yaml.CSafeLoader):
        if token.end_mark.index > token.start_mark.index:
            found.extend(_in_gap(text, (end, token.start_mark.index), starts, is_inside=depth > 0))
            end = token.end_mark.index
            if isinstance(token, yaml.ScalarToken) and token.style in {"|", ">"}:
                found.extend(_in_header(text, token.start_mark.index, starts))
                end = _end_of_block(text, token)
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
    tail = list(_in_gap(text, (end, len(text)), starts, is_inside=False))
    while tail and not tail[-1].text:
        tail.pop()
    return found + tail


def _in_gap(
    text: str, gap: tuple[int, int], starts: list[int], *, is_inside: bool
) -> Iterator[Remark]:
    """Yield what stands between two tokens, where nothing but spaces and comments can be."""
    at, end = gap
    lines = text[at:end].split("\n")
    for index, content in enumerate(lines):
        comment = content.strip()
        is_last = index == len(lines) - 1
        column = at - starts[_line(at, starts)]
        if comment:
            spaces = content.index("#")
            alone = column == 0
            yield Remark(
                comment, _line(at, starts), column + spaces, -1 if alone else spaces, is_inside
            )
        elif column == 0 and not is_last:
            yield Remark("", _line(at, starts), 0, -1, is_inside)
        at += len(content) + 1


def _in_header(text: str, start: int, starts: list[int]) -> Iterator[Remark]:
    """Yield the comment behind the `|` or `>` that opens a block scalar."""
    header = text[start : text.find("\n", start)]
    before, mark, comment = header.partition("#")
    if mark:
        gap = len(before) - len(before.rstrip())
        line = _line(start, starts)
        column = start + len(before) - starts[line]
        yield Remark(mark + comment.rstrip(), line, column, gap, is_inside=True)


def _end_of_block(text: str, token: yaml.ScalarToken) -> int:
    """Return where the lines of a block scalar end; the blank ones behind it are not its own."""
    end = int(token.end_mark.index)
    start = token.start_mark.index
    if "+" in text[start : text.find("\n", start)].partition("#")[0]:
        return end
    body = text[:end].rstrip(" \n")
    # At least the header's line belongs to it.
    return max(len(body), text.find("\n", start)) + 1 if end > len(body) else end


def _line(offset: int, starts: list[int]) -> int:
    return bisect.bisect_right(starts, offset) - 1
