"""What reading by known lines costs, in memory and in time, whatever a client sends."""

import sys
import time
from collections.abc import Iterator

import pytest

from tests.http.odd_messages import PLAIN, PLAIN_ANSWER
from tests.http.refused_requests import REFUSED, post
from tests.http.side_by_side import Reply, receive, serve
from vsr.http.plain_head import PlainHeads


@pytest.mark.parametrize(
    "line",
    [
        b"X:" + b" " * 20_000 + b"\x01",
        b"X:" + b" " * 20_000 + b"a\x01",
        b"X:" + b"\t " * 10_000 + b"\r",
        b"X: a" + b" " * 20_000 + b"\x01",
        b"X: " + b"a " * 10_000 + b"\x01",
        b"X: " + b"a" * 20_000 + b"\x01",
        b"a" * 20_000,
        b"Host: " + b"a" * 20_000 + b"/",
        b"Content-Length: " + b"1" * 20_000,
    ],
)
def test_line_is_judged_in_a_time_that_grows_with_its_length(line: bytes) -> None:
    """One client must not hold the loop: a head of 60 KiB costs milliseconds, not minutes."""
    request = post(line)
    reply = Reply((b"HTTP/1.1 200 OK\r\n" + line + b"\r\nContent-Length: 0\r\n\r\n",))

    started_at = time.process_time()
    serve([request], PlainHeads(), takes_late=False)
    receive([reply], PlainHeads())

    assert time.process_time() - started_at < 0.5


def test_start_line_is_judged_in_a_time_that_grows_with_its_length() -> None:
    """As above."""
    started_at = time.process_time()
    for start in (b"POST /" + b"a" * 20_000, b"POST /" + b"a " * 10_000, b"P" * 20_000):
        serve([post(start=start)], PlainHeads(), takes_late=False)
    for start in (b"HTTP/1.1 200 " + b"a " * 10_000 + b"\x01", b"HTTP/1.1 200" + b" " * 20_000):
        receive([Reply((start + b"\r\nContent-Length: 0\r\n\r\n",))], PlainHeads())

    assert time.process_time() - started_at < 0.5


def _known_texts(heads: PlainHeads) -> Iterator[bytes]:
    """Yield every text that is kept, whatever keeps it."""
    for kept in vars(heads).values():
        assert isinstance(kept, dict)
        yield from kept


def _known_heads(heads: PlainHeads) -> list[bytes]:
    """Return the whole request heads that are kept: texts of more than one line."""
    return [text for text in _known_texts(heads) if b"\r\n" in text]


def _feed_all(heads: PlainHeads, request: bytes, answer: bytes) -> None:
    """Let both sides read a message of the ordinary shape; fail if one was left to the parser."""
    assert heads.read_request(request) is not None
    assert heads.read_response(answer) is not None


def test_known_lines_are_bounded() -> None:
    """However many different ones come: here 60,000 of each kind."""
    heads = PlainHeads()
    most = 0

    for number in range(60_000):
        _feed_all(
            heads,
            post(b"X-Id: %d" % number, start=b"POST /%d HTTP/1.1" % number),
            b"HTTP/1.1 200 %d\r\nX-Id: %d\r\nContent-Length: 0\r\n\r\n" % (number, number),
        )
        if number % 500 == 0:
            most = max(most, sum(1 for _ in _known_texts(heads)))

    assert most <= 4 * 4096 + 1024
    assert sum(1 for _ in _known_texts(heads)) <= 4 * 4096 + 1024
    assert len(_known_heads(heads)) <= 1024
    assert sum(map(sys.getsizeof, vars(heads).values())) < 2_000_000


def test_values_that_never_repeat_do_not_add_up() -> None:
    """The size after many of them is that after fewer, within the bound."""
    heads = PlainHeads()
    sizes: list[int] = []

    for number in range(50_000):
        token = b"%040d" % number
        _feed_all(
            heads,
            post(b"Authorization: Bearer " + token, b"X-Request-Id: " + token),
            b"HTTP/1.1 200 OK\r\nX-Request-Id: %b\r\nContent-Length: 0\r\n\r\n" % token,
        )
        if number % 1000 == 999:
            sizes.append(sum(map(len, _known_texts(heads))))

    assert max(sizes[25:]) <= max(sizes[:25]) * 1.1


@pytest.mark.parametrize("size", [257, 5000])
def test_long_lines_are_read_but_not_kept(size: int) -> None:
    """A few long ones would weigh as much as all the others."""
    heads = PlainHeads()

    for number in range(50):
        long = b"%d-" % number + b"a" * size
        _feed_all(
            heads,
            post(b"X: " + long, start=b"POST /%b HTTP/1.1" % long),
            b"HTTP/1.1 200 %b\r\nX: %b\r\nContent-Length: 0\r\n\r\n" % (long, long),
        )

    assert max(len(text) for text in _known_texts(heads) if b"\r\n" not in text) <= 256
    assert max(map(len, _known_heads(heads)), default=0) <= 2048
    assert bool(_known_heads(heads)) is (size < 2048 // 2)


def test_refused_lines_are_not_kept() -> None:
    """Only what was found sound is known."""
    heads = PlainHeads()

    for raw, _ in REFUSED.values():
        heads.read_request(raw)
        heads.read_response(raw.replace(b"POST /x HTTP/1.1", b"HTTP/1.1 200 OK"))

    assert _known_heads(heads) == []
    assert not any(b"\r" in text or b"\x00" in text for text in _known_texts(heads))
    assert not any(text.lower().startswith(b"transfer-encoding") for text in _known_texts(heads))


def test_responses_do_not_share_what_can_be_changed() -> None:
    """Effects change the lines of a response in place."""
    heads = PlainHeads()
    first, second = heads.read_response(PLAIN_ANSWER), heads.read_response(PLAIN_ANSWER)
    assert first is not None
    assert second is not None

    first[0].lines.append((b"x", b"y"))

    assert heads.read_response(PLAIN_ANSWER) == second


def test_head_is_known_by_all_of_its_bytes() -> None:
    """One that differs in a byte is read anew; bodies have nothing to do with it."""
    heads = PlainHeads()

    read = [
        heads.read_request(raw)
        for raw in (
            post(b"X-A: 1", start=b"POST /x HTTP/1.1"),
            post(b"X-A: 2", start=b"POST /x HTTP/1.1"),
            post(b"X-A: 1", start=b"POST /y HTTP/1.1"),
            post(b"x-a: 1", start=b"POST /x HTTP/1.1"),
        )
    ]

    shown = [(head.target, head.fields[b"x-a"]) for head in read if head is not None]
    assert shown == [(b"/x", b"1"), (b"/x", b"2"), (b"/y", b"1"), (b"/x", b"1")]
    assert len(_known_heads(heads)) == 4


@pytest.mark.parametrize("cut", [1, 2])
def test_known_head_with_another_body_is_left_to_the_parser(cut: int) -> None:
    """Whether the body is all there is looked at each time, not once per head."""
    heads = PlainHeads()
    assert heads.read_request(PLAIN) is not None

    assert heads.read_request(PLAIN[:-cut]) is None
    assert heads.read_request(PLAIN + b"x" * cut) is None
    assert heads.read_request(PLAIN + PLAIN) is None
    again = heads.read_request(PLAIN)
    assert again is not None
    assert again.body == b"hello"
