"""Where a configuration came from."""

from enum import StrEnum

import msgspec


class OriginSource(StrEnum):
    """What brought a configuration to the Router. Source: standalone-mode 5.1 and 5.4."""

    STARTUP = "startup"
    FILE = "file"
    API = "api"
    KUBERNETES = "kubernetes"
    ROLLBACK = "rollback"
    DSL = "dsl"
    """Written by older releases of the reference."""
    LEGACY = "legacy"
    """A document without a word on where it came from."""


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where one configuration came from, and who asked for it."""

    source: str
    """A word of `OriginSource`, or one that a later release has written."""
    principal: str = ""
    """Role of the management API, or `anonymous`; empty: nobody asked."""
    request_id: str = ""
    rollback_of: int = 0
    """Version that is served again; 0: none."""
