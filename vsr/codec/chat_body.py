"""A chat-completions request whose members are edited one by one; every other byte stays."""

from collections.abc import Mapping

import msgspec


class ChatBody(msgspec.Struct, frozen=True):
    """One request body; every edit returns another one."""

    members: Mapping[str, msgspec.Raw]
    """Top-level members in the client's order; `messages` is among them, if it is there."""
