"""Reading by known lines never changes what a message means: the parser is the measure."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http.messages import (
    cut,
    cuts,
    each_byte,
)
from tests.http.odd_messages import (
    COLONS,
    NAMES,
    PLAIN,
    PLAIN_ANSWER,
    START_LINES,
    STATUS_LINES,
    VALUES,
    known_requests,
    odd_replies,
    odd_requests,
)
from tests.http.refused_requests import REFUSED, post
from tests.http.side_by_side import Reply, receive, serve
from vsr.http.plain_head import PlainHeads


def _warmed(*, by: list[bytes], replies: list[Reply] | None = None) -> PlainHeads:
    """Return heads that other connections have been read with."""
    heads = PlainHeads()
    for raw in by:
        serve([raw], heads, takes_late=False)
    for reply in replies or ():
        receive([reply], heads)
    return heads


@given(
    messages=st.lists(odd_requests, min_size=1, max_size=4),
    known=known_requests,
    places=cuts,
    is_cut=st.booleans(),
    takes_late=st.booleans(),
)
@settings(deadline=None, max_examples=250)
def test_requests_come_out_as_from_the_parser(
    messages: list[bytes], known: list[bytes], places: list[int], *, is_cut: bool, takes_late: bool
) -> None:
    """Any messages, sound or broken, cut between them or anywhere, with new or known lines."""
    pieces = cut(b"".join(messages), places) if is_cut else messages
    expected = serve(pieces, None, takes_late=takes_late)
    heads = _warmed(by=[*known, *messages])

    assert serve(pieces, PlainHeads(), takes_late=takes_late) == expected
    assert serve(pieces, heads, takes_late=takes_late) == expected
    assert serve(pieces, heads, takes_late=takes_late) == expected


@given(
    before=st.sampled_from([PLAIN, post(), post(b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")]),
    after=odd_requests,
    places=cuts,
)
@settings(deadline=None, max_examples=150)
def test_request_cut_anywhere_comes_out_as_from_the_parser(
    before: bytes, after: bytes, places: list[int]
) -> None:
    """What the parser has begun the parser ends, whatever the rest of it looks like alone."""
    behind = after + PLAIN
    head, rest = cut(behind, places[:1])[0], b"".join(cut(behind, places[:1])[1:])

    for pieces in ([before + head, rest], [before[:-2], before[-2:] + head, rest]):
        expected = serve(pieces, None, takes_late=False)
        assert serve(pieces, PlainHeads(), takes_late=False) == expected


@given(replies=st.lists(odd_replies, min_size=1, max_size=4), places=cuts, is_cut=st.booleans())
@settings(deadline=None, max_examples=250)
def test_responses_come_out_as_from_the_parser(
    replies: list[Reply], places: list[int], *, is_cut: bool
) -> None:
    """The same for backends."""
    if is_cut:
        replies = [
            Reply(
                tuple(cut(b"".join(reply.pieces), places)),
                reply.is_head_request,
                reply.ends_at_close,
            )
            for reply in replies
        ]
    expected = receive(replies, None)
    heads = _warmed(by=[], replies=replies)

    assert receive(replies, PlainHeads()) == expected
    assert receive(replies, heads) == expected
    assert receive(replies, heads) == expected


@pytest.mark.parametrize("name", NAMES)
def test_every_odd_line_is_read_as_by_the_parser(name: bytes) -> None:
    """Each name with each colon and each value, in a request and in a response."""
    heads = _warmed(by=[PLAIN], replies=[Reply((PLAIN_ANSWER,))])

    for colon, value in product(COLONS, VALUES):
        line = name + colon + value
        for message in (
            post(line, b"Content-Length: 5", body=b"hello"),
            post(line, body=b"hello"),
            b"POST / HTTP/1.1\r\n" + line + b"\r\n\r\n",
        ):
            expected = serve([message], None, takes_late=False)
            assert serve([message], heads, takes_late=False) == expected, message
        reply = Reply((b"HTTP/1.1 200 OK\r\n" + line + b"\r\nContent-Length: 5\r\n\r\nhello",))
        assert receive([reply], heads) == receive([reply], None), reply


@pytest.mark.parametrize("start", START_LINES)
def test_every_start_line_is_read_as_by_the_parser(start: bytes) -> None:
    """With and without a body."""
    for raw in (post(start=start), post(b"Content-Length: 5", body=b"hello", start=start)):
        expected = serve([raw, PLAIN], None, takes_late=False)

        assert serve([raw, PLAIN], PlainHeads(), takes_late=False) == expected


@pytest.mark.parametrize("is_head_request", [False, True])
@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 5\r\n\r\nhello",
        b"Content-Length: 5\r\n\r\n",
        b"Content-Length: 0\r\n\r\n",
        b"\r\n",
        b"\r\nhello",
        b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        b"Content-Length: 4\r\n\r\nhello",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Content-Length: 5\r\nConnection: close\r\n\r\nhello",
        b"Content-Length: 5\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\nhello",
        b"Content-Length: 5\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\nhello",
    ],
)
def test_every_status_line_is_read_as_by_the_parser(rest: bytes, *, is_head_request: bool) -> None:
    """With every framing, and with another response behind it."""
    for status in STATUS_LINES:
        first = Reply((status + b"\r\n" + rest,), is_head_request=is_head_request)
        replies = [first, Reply((PLAIN_ANSWER,))]

        assert receive(replies, PlainHeads()) == receive(replies, None), status


@pytest.mark.parametrize("where", ["name", "value", "target", "method", "status line", "version"])
def test_every_byte_is_judged_as_by_the_parser(where: str) -> None:
    """No byte passes by a known line that the parser refuses."""
    heads = _warmed(by=[PLAIN], replies=[Reply((PLAIN_ANSWER,))])

    for number in range(256):
        byte = bytes([number])
        request = {
            "name": post(b"X%b: 1" % byte),
            "value": post(b"X: a%bb" % byte, b"Y:%b" % byte, b"Z: c%b" % byte),
            "target": post(start=b"POST /a%bb HTTP/1.1" % byte),
            "method": post(start=b"POST%b / HTTP/1.1" % byte),
            "version": post(start=b"POST / HTTP/1.1%b" % byte),
        }.get(where, PLAIN)
        answer = {
            "name": PLAIN_ANSWER.replace(b"X-A", b"X%b" % byte),
            "value": PLAIN_ANSWER.replace(b"1\r\n", b"a%b\r\n" % byte),
            "status line": PLAIN_ANSWER.replace(b"OK", b"O%bK" % byte),
            "version": PLAIN_ANSWER.replace(b"HTTP/1.1", b"HTTP/1.1%b" % byte),
        }.get(where, PLAIN_ANSWER)

        served = serve([request], heads, takes_late=False)
        got = receive([Reply((answer,))], heads)

        assert served == serve([request], None, takes_late=False), byte
        assert got == receive([Reply((answer,))], None), byte


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("known", [False, True])
def test_refused_request_stays_refused(name: str, *, known: bool) -> None:
    """On connections of its own, when lines like its lines are known, and when it comes again."""
    raw, status = REFUSED[name]
    heads = _warmed(by=[PLAIN, post(), raw, raw] if known else [])

    for pieces in ([raw], each_byte(raw), [PLAIN, raw], [PLAIN + raw], [PLAIN + raw[:1], raw[1:]]):
        served = serve(pieces, heads, takes_late=False)

        assert served == serve(pieces, None, takes_late=False)
        assert served.fault is not None
        assert served.fault[0] == status
