"""Messages for comparing two ways of reading: sound ones, odd ones, and broken ones."""

from hypothesis import strategies as st

from tests.http.messages import answers, requests
from tests.http.refused_requests import REFUSED, post
from tests.http.side_by_side import Reply

PLAIN = post(b"X-A: 1", b"Content-Length: 5", body=b"hello")
PLAIN_ANSWER = b"HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello"

START_LINES = [
    b"POST /x HTTP/1.1",
    b"GET /x?a=b%20c HTTP/1.1",
    b"PUT / HTTP/1.1",
    b'PATCH /a"<>\\^`{|}~! HTTP/1.1',
    b"DELETE //x HTTP/1.1",
    b"OPTIONS /x HTTP/1.1",
    b"OPTIONS * HTTP/1.1",
    b"HEAD /x HTTP/1.1",
    b"TRACE /x HTTP/1.1",
    b"CONNECT h:1 HTTP/1.1",
    b"post /x HTTP/1.1",
    b"Post /x HTTP/1.1",
    b"PROPFIND /x HTTP/1.1",
    b"BREW /x HTTP/1.1",
    b"POST  /x HTTP/1.1",
    b"POST\t/x HTTP/1.1",
    b"POST /x  HTTP/1.1",
    b"POST /x HTTP/1.1 ",
    b" POST /x HTTP/1.1",
    b"POST /x y HTTP/1.1",
    b"POST x HTTP/1.1",
    b"POST http://o/x HTTP/1.1",
    b"POST /x#y HTTP/1.1",
    b"POST /\xc3\xa9 HTTP/1.1",
    b"POST /\x7f HTTP/1.1",
    b"POST /x HTTP/1.0",
    b"POST /x HTTP/1.2",
    b"POST /x HTTP/2.0",
    b"POST /x http/1.1",
    b"POST /x HTTP/1.1\r",
    b"POST /x\nHTTP/1.1",
    b"POST /x",
    b"",
]
STATUS_LINES = [
    b"HTTP/1.1 200 OK",
    b"HTTP/1.1 404 Not Found",
    b"HTTP/1.1 200 ",
    b"HTTP/1.1 200",
    b"HTTP/1.1 200 a\tb \xe9",
    b"HTTP/1.1 200  OK ",
    b"HTTP/1.1 299 caf\xc3\xa9",
    b"HTTP/1.1 200 a\x01b",
    b"HTTP/1.1 200 a\x00b",
    b"HTTP/1.1 200 a\rb",
    b"HTTP/1.1 200 a\nb",
    b"HTTP/1.1 200 a\x7fb",
    b"HTTP/1.1\t200 OK",
    b"HTTP/1.1  200 OK",
    b"HTTP/1.1 200\tOK",
    b"HTTP/1.1 204 No Content",
    b"HTTP/1.1 205 Reset Content",
    b"HTTP/1.1 304 Not Modified",
    b"HTTP/1.1 100 Continue",
    b"HTTP/1.1 101 Switching Protocols",
    b"HTTP/1.1 103 Early Hints",
    b"HTTP/1.1 600 X",
    b"HTTP/1.1 999 X",
    b"HTTP/1.1 099 X",
    b"HTTP/1.1 2000 X",
    b"HTTP/1.1 20 X",
    b"HTTP/1.0 200 OK",
    b"HTTP/2.0 200 OK",
    b"http/1.1 200 OK",
    b"ICY 200 OK",
    b" HTTP/1.1 200 OK",
    b"",
]
NAMES = [
    b"Host",
    b"Content-Length",
    b"content-length",
    b"Transfer-Encoding",
    b"Connection",
    b"CONNECTION",
    b"Keep-Alive",
    b"Proxy-Connection",
    b"Upgrade",
    b"TE",
    b"Trailer",
    b"Expect",
    b"X-A",
    b"x-a",
    b"!#$%&'*+-.^_`|~09",
    b"Content_Length",
    b"",
    b"X\xe9",
    b"X A",
    b"X\x00",
    b"X(",
    b'"',
]
COLONS = [b":", b": ", b":\t", b":  \t ", b" :", b"\t:", b"", b" ", b":\r\n ", b"::", b":\x0b"]
VALUES = [
    b"",
    b"5\t",
    b"5 \t ",
    b"keep-alive\t",
    b"h\t",
    b"a \t",
    b"0",
    b"5",
    b"00005",
    b"+5",
    b"-5",
    b"5, 5",
    b"5 5",
    b"0x5",
    b"1000000000000000000",
    b"99999999999999999999",
    b"\xd9\xa5",
    b"h",
    b"h:80",
    b"h:x",
    b"[::1]:80",
    b"a b",
    b"a/b",
    b"u@h",
    b"keep-alive",
    b"Keep-Alive",
    b"KEEP-ALIVE",
    b"keep-alive,",
    b"keep-alive, keep-alive",
    b"keep-alive, close",
    b"keep-alive, X-A",
    b"close",
    b"Close",
    b"close, X-A",
    b"upgrade",
    b"chunked",
    b"gzip, chunked",
    b"h2c",
    b"100-continue",
    b"trailers",
    b"timeout=5",
    b"a\tb",
    b"caf\xc3\xa9",
    b"\xff",
    b"a\x00b",
    b"a\x01b",
    b"a\x0bb",
    b"a\x0cb",
    b"a\x1bb",
    b"a\x7fb",
    b"a\rb",
    b"a\nb",
    b"a\r\n b",
    b"a\r\n\tb",
    b"v" * 300,
]
LINE_ENDS = [b"\r\n"] * 12 + [b"\n", b"\r", b"\r\r\n", b"\n\r\n", b"\r\n\r\n"]

_usual_lines = st.sampled_from(
    [b"X-A: 1", b"x-b:2", b"X-C:\t3\t", b"Connection: keep-alive", b"Accept: */*", b"X-Empty:"]
)
_odd_lines = st.builds(
    lambda name, colon, value, end: name + colon + value + end,
    st.sampled_from(NAMES),
    st.sampled_from(COLONS),
    st.sampled_from(VALUES),
    st.sampled_from([b"", b" ", b"\t", b" \t "]),
)
_bodies = st.sampled_from([b"", b"hello", b"\r\n", b"\r\n\r\n", PLAIN, b"0\r\n\r\n", b"\x00\xff"])
known_requests = st.lists(st.sampled_from([PLAIN, PLAIN.replace(b"X-A: 1", b"X-B: 2")]), max_size=2)


@st.composite
def _written(draw: st.DrawFn, starts: list[bytes], host: bytes) -> bytes:
    """Draw a message: most are sound, many odd in one place, few in several."""
    start = draw(st.just(starts[0]) | st.sampled_from(starts[:3]) | st.sampled_from(starts))
    lines = [*draw(st.lists(_usual_lines, max_size=4)), *draw(st.lists(_odd_lines, max_size=1))]
    body = draw(_bodies)
    if host and draw(st.integers(0, 9)):
        lines.append(host)
    if draw(st.integers(0, 9)):
        lines.append(b"Content-Length: %d" % len(body))
    ends = [draw(st.sampled_from(LINE_ENDS)) if draw(st.integers(0, 9)) == 0 else b"\r\n"]
    joined = ends[0].join([start, *draw(st.permutations(lines))])
    return joined + b"\r\n\r\n" + body + draw(st.sampled_from([b""] * 6 + [b"\r\n", b"P", b"x"]))


@st.composite
def _mutated(draw: st.DrawFn, sound: st.SearchStrategy[bytes]) -> bytes:
    """Draw a sound message with a few bytes replaced, put in or left out."""
    raw = draw(sound)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(raw)))
        new = draw(st.sampled_from([b"", b"\r", b"\n", b"\r\n", b"\0", b" ", b"\t", b":", b"\x80"]))
        raw = raw[:at] + new + raw[at + draw(st.integers(0, 2)) :]
    return raw


odd_requests = (
    requests().map(lambda message: message.raw)
    | st.sampled_from(sorted(REFUSED)).map(lambda name: REFUSED[name][0])
    | _written(START_LINES, b"Host: h")
    | _mutated(requests().map(lambda message: message.raw))
    | _mutated(st.just(PLAIN))
)
odd_replies = answers().map(
    lambda answer: Reply((answer.raw,), answer.is_head_request, answer.ends_at_close)
) | st.builds(
    Reply,
    st.tuples(_written(STATUS_LINES, b"") | _mutated(st.just(PLAIN_ANSWER))),
    st.sampled_from([False, False, False, True]),
    st.booleans(),
)
