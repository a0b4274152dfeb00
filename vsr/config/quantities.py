"""The document's spellings of durations and token counts."""

import math
import re

# Source: Go, package time, ParseDuration. Nanoseconds per unit; both micro signs are legal.
_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_MAX_INT64 = 2**63 - 1
_MAX_TEXT = 100


def parse_duration_s(text: str) -> float:
    """Return the seconds of a Go duration such as `1m30s`, `250ms` or `0`.

    Raises:
        ValueError: it is no duration, or longer than Go's 292 years.
    """
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in {"-", "+"} else text
    if rest == "0":
        return 0.0
    if not rest or len(rest) > _MAX_TEXT:
        raise ValueError("not a duration")
    total_ns = at = 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None or not (part[1] or part[2]):
            raise ValueError("not a duration")
        unit_ns = _UNITS_NS[part[3]]
        fraction = part[2] or ""
        total_ns += int(part[1] or "0") * unit_ns
        total_ns += int(fraction or "0") * unit_ns // 10 ** len(fraction)
        at = part.end()
    if total_ns > _MAX_INT64:
        raise ValueError("too long")
    return sign * total_ns / 1e9


_SCALES = {"K": 1_000, "M": 1_000_000}
# Source: Go, package strconv, ParseFloat; `_` only between digits. The text is upper case.
_DIGITS = r"[0-9](?:_?[0-9])*"
_DECIMAL = re.compile(rf"[-+]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:E[-+]?[0-9]+)?")
_HEX_DIGITS = r"[0-9A-F](?:_?[0-9A-F])*"
_HEX = re.compile(rf"[-+]?0X_?{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?P[-+]?[0-9]+")


def parse_token_count(value: str | float) -> int:
    """Return a token count such as `24K`, `1.5M` or 1000, truncated.

    Raises:
        ValueError: it is no number, negative, or not below 2**63 - 1.
    """
    number = value if not isinstance(value, str) else _parse_tokens(value.strip().upper())
    if not math.isfinite(number) or number < 0:
        raise ValueError("not a count")
    if number >= _MAX_INT64:
        raise ValueError("too large")
    return int(number)


def _parse_tokens(text: str) -> float:
    scale = _SCALES.get(text[-1:], 1)
    digits = text[:-1] if scale > 1 else text
    if len(digits) <= _MAX_TEXT and _DECIMAL.fullmatch(digits):
        return float(digits) * scale
    if len(digits) <= _MAX_TEXT and _HEX.fullmatch(digits):
        return float.fromhex(digits.replace("_", "")) * scale
    raise ValueError("not a number")
