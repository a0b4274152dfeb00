"""What of a reply is shown to the model that reads it."""

from typing import Literal

Compaction = Literal["full", "last_n_tokens"]

BYTES_PER_TOKEN = 4
"""Source: looper-algorithms 8.1, 8.6."""

_DEFAULT_TOKENS = 1000


def compacted(text: str, strategy: Compaction, tokens: int | None) -> str:
    """Return `text`, or its last bytes where only so many tokens are kept.

    It is cut at a character, so it may have up to three bytes less; no or 0 tokens means 1000.

    Source: looper-algorithms 8.1.
    """
    if strategy == "full":
        return text
    kept_bytes = BYTES_PER_TOKEN * (tokens or _DEFAULT_TOKENS)
    if len(text) <= kept_bytes // BYTES_PER_TOKEN:
        return text
    whole = text[-kept_bytes:].encode("utf-8", "surrogatepass")
    return _from_character(whole[-kept_bytes:])


def _from_character(data: bytes) -> str:
    start = 0
    while start < len(data) and data[start] & 0xC0 == 0x80:  # noqa: PLR2004  # a character's inside
        start += 1
    return data[start:].decode("utf-8", "surrogatepass")
