"""Where the JSON object in a tool call's arguments ends, while it comes in pieces."""

import re

_MARK = re.compile(r'["\\{}\[\]]')
_MARK_IN_STRING = re.compile(r'["\\]')
_OPENING = frozenset("{[")


class ArgumentScan:
    """Follows one object, piece by piece, and keeps none of them.

    It takes only the brackets for what they are: whether all of it is JSON is the client's to see.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self.is_object = True
        """Nothing but an object has been seen."""
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False

    @property
    def is_whole(self) -> bool:
        """Return whether the object has ended."""
        return self.has_begun and self.is_object and not self._depth

    def feed(self, text: str) -> None:
        """Read on."""
        if not self.has_begun:
            text = text.lstrip()
            if not text:
                return
            self.has_begun = True
            self.is_object = text.startswith("{")
        at = 0
        if self._is_escaped and text:
            self._is_escaped = False
            at = 1
        while found := (_MARK_IN_STRING if self._is_in_string else _MARK).search(text, at):
            at = found.end()
            mark = found[0]
            if mark == "\\":
                self._is_escaped = at == len(text)
                at += 1
            elif mark == '"':
                self._is_in_string = not self._is_in_string
            else:
                self._depth = max(self._depth + (1 if mark in _OPENING else -1), 0)
