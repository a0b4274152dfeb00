"""Resource `looper`: settings of all algorithms that ask several models."""

from collections.abc import Mapping
from enum import StrEnum

import attrs
import msgspec

LOOPERS = frozenset({"confidence", "ratings", "remom", "fusion", "workflows"})
"""Algorithms of the reference that ask several models."""


class StateBackend(StrEnum):
    """Where runs that wait for a client's tools are kept."""

    FILE = "file"
    MEMORY = "memory"
    REDIS = "redis"


@attrs.frozen
class RedisStore:
    """How a Redis server is reached."""

    address: str = "localhost:6379"
    db: int = 0
    password: str | None = attrs.field(default=None, repr=False)
    use_tls: bool = False
    tls_skip_verify: bool = False
    max_retries: int = 3
    pool_size: int = 10
    key_prefix: str = "vllm-sr:flow:state:"


class StateStore(msgspec.Struct, frozen=True):
    """Keeps runs that wait for a client's tools."""

    backend: StateBackend = StateBackend.FILE
    ttl_s: float = 1_800.0
    directory: str | None = None
    """Of files; None: a folder of the user's cache."""
    redis: RedisStore = RedisStore()


@attrs.frozen
class LooperSettings:
    """Holds for the calls of the algorithms' built-in graphs. Defaults are the reference's."""

    call_timeout_s: float = 1_200.0
    """Of each model call, from its connection to the last byte of the body."""
    max_response_bytes: int = 33_554_432
    """Of one call's body; a body of exactly this size passes."""
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False, hash=False)
    """Set on every model call, before its credential."""
    state: StateStore = attrs.field(factory=StateStore)
