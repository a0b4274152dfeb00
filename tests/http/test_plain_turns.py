"""Where reading by known lines begins and ends on a connection: the parser is the measure."""

import pytest
from hypothesis import given, settings

from tests.http.messages import WireAnswer, WireMessage, answers, cut, cuts, requests
from tests.http.odd_messages import PLAIN, PLAIN_ANSWER
from tests.http.refused_requests import post
from tests.http.side_by_side import Reply, receive, serve
from vsr.http.framing import MAX_FIELDS, MAX_HEAD_BYTES
from vsr.http.h1_client import ClientConnection
from vsr.http.h1_server import ServerConnection
from vsr.http.plain_head import PlainHeads


@pytest.mark.parametrize("begun", [b"P", b"PU", b"PUT", b"PUT ", b"GET ", b"\r", b"\r\n", b"x"])
@pytest.mark.parametrize("before", [PLAIN, post(), post(b"Connection: x", body=b"")])
def test_message_that_was_begun_is_not_begun_again(before: bytes, begun: bytes) -> None:
    """Else whoever decides where reads end decides what is a request."""
    pieces = [before + begun, post(start=b"PUT /smuggled HTTP/1.1")]

    served = serve(pieces, PlainHeads(), takes_late=False)

    assert served == serve(pieces, None, takes_late=False)


@pytest.mark.parametrize("begun", [b"HTTP/1.1 200 OK\r\nX: ", b"H", b"\r\n", b"x"])
def test_response_that_was_begun_is_not_begun_again(begun: bytes) -> None:
    """The same for backends; in the first case the second read ends a sound response."""
    replies = [Reply((begun, PLAIN_ANSWER))]

    assert receive(replies, PlainHeads()) == receive(replies, None)


def test_empty_lines_in_front_count_towards_the_limit_of_a_head() -> None:
    """Although they came in a read of their own."""
    request = post(b"X: %b")
    request = request.replace(b"%b", b"a" * (MAX_HEAD_BYTES - len(request) - 100))
    pieces = [b"\r\n" * 80, request]

    served = serve(pieces, PlainHeads(), takes_late=False)

    assert served.fault is not None
    assert served == serve(pieces, None, takes_late=False)


def test_begun_message_that_is_ended_properly_is_served() -> None:
    """The second request came in two reads."""
    pieces = [PLAIN + b"P", PLAIN[1:], PLAIN]

    served = serve(pieces, PlainHeads(), takes_late=False)

    assert [request.body for request in served.requests] == [b"hello"] * 3
    assert served == serve(pieces, None, takes_late=False)


@pytest.mark.parametrize(
    "last",
    [
        post(b"Connection: close"),
        post(b"Connection: Close, x"),
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.0\r\nConnection: x\r\n\r\n",
    ],
)
def test_nothing_is_served_behind_the_last_request(last: bytes) -> None:
    """Also when what follows comes in a read of its own and would be plain."""
    served = serve([last, PLAIN], PlainHeads(), takes_late=False)

    assert served == serve([last, PLAIN], None, takes_late=False)
    assert len(served.requests) == 1
    assert served.fault is not None


@pytest.mark.parametrize("more", range(-6, 7))
def test_limit_of_a_head_is_the_parsers(more: int) -> None:
    """To the byte, in requests and responses."""
    request = post(b"X: %b", b"Content-Length: 5", body=b"")
    request = request.replace(b"%b", b"a" * (MAX_HEAD_BYTES + more - len(request) + 2)) + b"hello"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: %b\r\n\r\n"
    answer = answer.replace(b"%b", b"a" * (MAX_HEAD_BYTES + more - len(answer) + 2)) + b"hello"
    target = post(start=b"POST /%b HTTP/1.1")
    target = target.replace(b"%b", b"a" * (MAX_HEAD_BYTES + more - len(target) + 2))

    for raw in (request, target):
        served = serve([raw], PlainHeads(), takes_late=False)
        assert (served.fault is None) == (more <= 0)
        assert served == serve([raw], None, takes_late=False)
    got = receive([Reply((answer,))], PlainHeads())
    assert (got[0].fault is None) == (more <= 0)
    assert got == receive([Reply((answer,))], None)


@pytest.mark.parametrize("count", range(MAX_FIELDS - 3, MAX_FIELDS + 4))
@pytest.mark.parametrize("kept", [b"Connection: keep-alive", b"Keep-Alive: 5", b"X: 1"])
def test_number_of_fields_is_the_parsers(count: int, kept: bytes) -> None:
    """Fields that end at this hop count like others."""
    lines = [*[b"X-%d: a" % index for index in range(count - 2)], kept]
    request = post(*lines)
    answer = b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"Content-Length: 0", b"", b""])

    served = serve([request], PlainHeads(), takes_late=False)
    got = receive([Reply((answer,))], PlainHeads())

    assert (served.fault is None) == (count <= MAX_FIELDS)
    assert served == serve([request], None, takes_late=False)
    assert (got[0].fault is None) == (count <= MAX_FIELDS)
    assert got == receive([Reply((answer,))], None)


@given(message=requests(), places=cuts)
@settings(deadline=None)
def test_plain_requests_and_others_take_turns(message: WireMessage, places: list[int]) -> None:
    """A connection may change from one way of reading to the other at every request."""
    pieces = [PLAIN, *cut(message.raw, places), PLAIN, message.raw, PLAIN]

    served = serve(pieces, PlainHeads(), takes_late=False)

    assert served == serve(pieces, None, takes_late=False)
    assert served.fault is None
    assert len(served.requests) == 5


@given(answer=answers(keeps_connection=True), places=cuts)
@settings(deadline=None)
def test_plain_responses_and_others_take_turns(answer: WireAnswer, places: list[int]) -> None:
    """The same for backends."""
    other = Reply(tuple(cut(answer.raw, places)), answer.is_head_request)
    replies = [Reply((PLAIN_ANSWER,)), other, Reply((PLAIN_ANSWER,)), other, Reply((PLAIN_ANSWER,))]

    got = receive(replies, PlainHeads())

    assert got == receive(replies, None)
    assert len(got) == 5


@pytest.mark.parametrize("behind", [b"x", b"\r\n", b"HTTP/1.1 200 OK\r\n", PLAIN_ANSWER, b"\0"])
def test_bytes_behind_a_plain_response_spoil_the_connection_as_ever(behind: bytes) -> None:
    """Nobody asked for them, in the same read or in a later one."""
    for pieces in ((PLAIN_ANSWER + behind,), (PLAIN_ANSWER, behind)):
        replies = [Reply(pieces), Reply((PLAIN_ANSWER,))]

        assert receive(replies, PlainHeads()) == receive(replies, None)


def test_plain_messages_are_read_without_the_parser() -> None:
    """The comparison above would say nothing if everything were left to the parser."""
    heads = PlainHeads()
    server, client = ServerConnection(heads), ClientConnection(heads)
    client.begin(is_head_request=False)

    server.feed(PLAIN)
    client.feed(PLAIN_ANSWER)

    head = server.next_event()
    assert getattr(head, "body", None) == b"hello"
    assert server.next_event() is None
    assert client.head is not None
    assert client.head.fields == {b"x-a": b"1", b"content-length": b"5"}
    assert client.take() == b"hello"
