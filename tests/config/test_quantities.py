"""Durations and token counts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.config.quantities import parse_duration_s, parse_token_count


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("0s", 0.0),
        ("+0", 0.0),
        ("-0", 0.0),
        ("5s", 5.0),
        ("+5s", 5.0),
        ("-5s", -5.0),
        ("30s", 30.0),
        ("1m30s", 90.0),
        ("1h2m3s4ms5us6ns", 3723.004005006),
        ("30s1m", 90.0),
        ("1s1s", 2.0),
        ("250ms", 0.25),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("0.100000000000000000000h", 360.0),
        ("10\u00b5s", 0.00001),
        ("10\u03bcs", 0.00001),
        ("1ns", 1e-9),
        ("0.3333333333333333333h", 1200.0),
        ("9223372036854775807ns", 9223372036.854775807),
    ],
)
def test_duration_is_read_as_go_does(text: str, seconds: float) -> None:
    """Source: Go, package time, ParseDuration and its tests."""
    assert parse_duration_s(text) == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "-",
        "s",
        ".",
        "-.",
        ".s",
        "+.s",
        "1d",
        "1 s",
        " 1s",
        "1s ",
        "1S",
        "1m30",
        "s1",
        "1e3s",
        "\u0661s",
        "--1s",
        "1..5s",
        "9223372036854775808ns",
        "2562048h",
        "1" * 200 + "s",
    ],
)
def test_duration_is_refused(text: str) -> None:
    """What Go refuses is refused."""
    with pytest.raises(ValueError, match=r"duration|too long"):
        parse_duration_s(text)


@settings(deadline=None)
@given(st.integers(0, 2**63 - 1))
def test_duration_of_any_nanoseconds_is_exact_to_a_float(nanoseconds: int) -> None:
    """No detour through inexact units."""
    assert parse_duration_s(f"{nanoseconds}ns") == nanoseconds / 1e9


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        (0, 0),
        (1000, 1000),
        (1.9, 1),
        ("0", 0),
        ("24K", 24_000),
        ("24k", 24_000),
        (" 1.5M ", 1_500_000),
        ("1m", 1_000_000),
        ("1.5", 1),
        (".5K", 500),
        ("5.", 5),
        ("1e3", 1000),
        ("1_000", 1000),
        ("0x1p4", 16),
        ("0x1p3K", 8000),
        ("+7", 7),
    ],
)
def test_token_count_is_read(value: str | float, tokens: int) -> None:
    """Suffixes multiply, fractions are cut off."""
    assert parse_token_count(value) == tokens


@pytest.mark.parametrize(
    "value",
    [
        "",
        "K",
        "many",
        "1KB",
        "1 K",
        "-1",
        -1,
        "-0.5",
        "inf",
        "nan",
        float("inf"),
        float("nan"),
        "1__0",
        "_1",
        "1_",
        "0x10",
        "1e999",
        2**63 - 1,
        "9223372036854775807",
        "\u0661",
        "1" * 200,
    ],
)
def test_token_count_is_refused(value: str | float) -> None:
    """Negative, endless and malformed counts are no counts."""
    with pytest.raises(ValueError, match=r"count|number|large"):
        parse_token_count(value)
