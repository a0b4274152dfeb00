"""Framing rules that hold for requests and responses alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsr.headers import HeaderLine
from vsr.http.framing import (
    HOP_BY_HOP,
    MAX_FIELDS,
    MAX_HEAD_BYTES,
    FramingError,
    RequestHead,
    read_framing,
    read_request_head,
)


def length(value: bytes) -> HeaderLine:
    """Return a Content-Length line."""
    return (b"content-length", value)


def coding(value: bytes) -> HeaderLine:
    """Return a Transfer-Encoding line."""
    return (b"transfer-encoding", value)


@pytest.mark.parametrize(
    ("lines", "declared", "is_chunked"),
    [
        ([], None, False),
        ([(b"x", b"content-length: 5")], None, False),
        ([length(b"0")], 0, False),
        ([length(b"007")], 7, False),
        ([length(b"9" * 18)], 10**18 - 1, False),
        ([coding(b"chunked")], None, True),
        ([coding(b"CHUNKED")], None, True),
    ],
)
def test_framing_is_read(
    lines: list[HeaderLine], declared: int | None, *, is_chunked: bool
) -> None:
    """One length, or exactly `chunked`, or neither."""
    framing = read_framing(0, lines)

    assert (framing.length, framing.is_chunked) == (declared, is_chunked)


@pytest.mark.parametrize(
    "lines",
    [
        [length(b"5"), coding(b"chunked")],
        [coding(b"chunked"), length(b"5")],
        [length(b"5"), length(b"5")],
        [length(b"5"), length(b"6")],
        *[
            [length(value)]
            for value in (b"", b" 5", b"5 ", b"+5", b"-5", b"5,5", b"5, 5", b"0x5", b"5.0", b"1_0")
        ],
        [length("\u0665".encode())],
        [length(b"9" * 19)],
        *[
            [coding(value)]
            for value in (
                b"",
                b"gzip",
                b"gzip, chunked",
                b"chunked, gzip",
                b"identity",
                b"chunked;a",
            )
        ],
        [coding(b"chunked"), coding(b"chunked")],
        [coding(b"chunked"), coding(b"identity")],
    ],
)
def test_ambiguous_framing_is_refused(lines: list[HeaderLine]) -> None:
    """No two parties may disagree on where a message ends."""
    with pytest.raises(FramingError) as caught:
        read_framing(0, lines)

    assert caught.value.status == 400


@given(st.integers(0, 10**18 - 1))
def test_every_plain_length_is_read(value: int) -> None:
    """Digits alone are a length."""
    assert read_framing(0, [length(b"%d" % value)]).length == value


def head_of(
    lines: list[HeaderLine],
    *,
    method: bytes = b"POST",
    target: bytes = b"/",
    is_http_1_0: bool = False,
) -> RequestHead:
    """Read a request head."""
    return read_request_head(method, target, lines, is_http_1_0=is_http_1_0, keep_alive=True)


@pytest.mark.parametrize(
    "host",
    [b"h", b"h:80", b"router.example", b"127.0.0.1:8899", b"[::1]", b"[::1]:8899", b"a_b", b"%41"],
)
def test_good_host_is_the_authority(host: bytes) -> None:
    """Names, addresses and ports as in RFC 3986 section 3.2."""
    assert head_of([(b"host", host)]).authority == host


@pytest.mark.parametrize(
    "host",
    [
        b"",
        b"a b",
        b"a/b",
        b"u@h",
        b"h:",
        b"h:x",
        b"h:123456",
        b"[::1",
        b"::1",
        b"h#",
        b"h?q",
        b"\xe9",
    ],
)
def test_bad_host_is_refused(host: bytes) -> None:
    """An authority that parties read differently may route to another place than was checked."""
    with pytest.raises(FramingError):
        head_of([(b"host", host)])


def test_host_may_be_missing_on_http_1_0_alone() -> None:
    """Source: RFC 9112 section 3.2."""
    assert head_of([], is_http_1_0=True).authority == b""
    with pytest.raises(FramingError):
        head_of([])


def test_body_is_expected_as_declared() -> None:
    """Neither length nor chunks means no body in a request."""
    host = (b"host", b"h")

    assert not head_of([host]).has_body
    assert not head_of([host, length(b"0")]).has_body
    assert head_of([host, length(b"3")]).has_body
    assert head_of([host, coding(b"chunked")]).has_body


@pytest.mark.parametrize(("method", "status"), [(b"CONNECT", 405), (b"TRACE", 405)])
def test_tunnels_and_traces_are_refused(method: bytes, status: int) -> None:
    """Neither has a place in a gateway."""
    with pytest.raises(FramingError) as caught:
        head_of([(b"host", b"h")], method=method)

    assert caught.value.status == status


@pytest.mark.parametrize(
    ("start_line_bytes", "lines", "status"),
    [
        (MAX_HEAD_BYTES + 1, [], 414),
        (10, [(b"x", b"")] * (MAX_FIELDS + 1), 431),
    ],
)
def test_over_long_head_is_refused(
    start_line_bytes: int, lines: list[HeaderLine], status: int
) -> None:
    """The status says whether target or fields are at fault."""
    with pytest.raises(FramingError) as caught:
        read_framing(start_line_bytes, lines)

    assert caught.value.status == status


def test_head_at_the_limits_passes() -> None:
    """The limits themselves are allowed."""
    read_framing(MAX_HEAD_BYTES, [])
    read_framing(100, [(b"x", b"")] * MAX_FIELDS)
    read_framing(0, [(b"x", b"a" * (MAX_HEAD_BYTES - 5))])


@pytest.mark.parametrize(
    ("values", "nominated"),
    [
        ([], set()),
        ([b"close"], set()),
        ([b"keep-alive"], set()),
        ([b"Keep-Alive, X-Secret"], {b"x-secret"}),
        ([b"close", b"x-a ,\tX-B,"], {b"x-a", b"x-b"}),
    ],
)
def test_fields_that_end_at_this_hop_are_named(values: list[bytes], nominated: set[bytes]) -> None:
    """The fixed ones always, those that Connection nominates too, whatever their case."""
    framing = read_framing(0, [(b"connection", value) for value in values])

    assert framing.dropped >= HOP_BY_HOP | nominated
    assert framing.dropped - HOP_BY_HOP - nominated <= {b"", b"close"}


def test_fixed_hop_by_hop_fields_are_complete() -> None:
    """Source: RFC 9110 section 7.6.1."""
    fixed = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"transfer-encoding"}

    assert fixed | {b"upgrade"} <= HOP_BY_HOP


def test_head_passes_its_hop_by_hop_names_on() -> None:
    """Who forwards the head drops them."""
    head = head_of([(b"host", b"h"), (b"connection", b"X-Secret")])

    assert b"x-secret" in head.dropped


@pytest.mark.parametrize(
    ("value", "is_http_1_0", "expects"),
    [
        (b"100-continue", False, True),
        (b"100-Continue", False, True),
        (b"100-continue", True, False),
    ],
)
def test_expectation_is_read(value: bytes, *, is_http_1_0: bool, expects: bool) -> None:
    """Source: RFC 9110 section 10.1.1."""
    head = head_of([(b"host", b"h"), (b"expect", value)], is_http_1_0=is_http_1_0)

    assert head.expects_continue is expects


def test_other_expectation_is_417() -> None:
    """There is no other one to meet."""
    with pytest.raises(FramingError) as caught:
        head_of([(b"host", b"h"), (b"expect", b"100-continue, x")])

    assert caught.value.status == 417


@pytest.mark.parametrize(
    "target", [b"", b"x", b"*", b"h:80", b"ftp://h/", b"http:///x", b"http://u@h/", b"/a#b"]
)
def test_bad_target_is_refused(target: bytes) -> None:
    """Only a path, or an absolute form that a server may be asked with."""
    with pytest.raises(FramingError):
        head_of([(b"host", b"h")], target=target)
