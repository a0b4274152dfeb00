"""Reading the cases of a corpus."""

import pytest

from vsr.routing.parity.case import Case, read_cases

CASES = """
cases:
  - name: chat
    request:
      method: POST
      path: /v1/chat/completions?a=1
      headers: [[Content-Type, application/json], [X-Envoy-Retry-On, 5xx], [x-b, 'é'], [a-c, '']]
      body: 'ö'
    upstream: whole
  - name: list
    request: {method: GET, path: /v1/models}
upstreams:
  whole: {status: 200, headers: [[X-Up, '1']], body: '{}'}
  cut: {status: 200, chunks: [a, b]}
"""


def case_of(canned: str, method: str = "POST", of: str = "x") -> Case:
    """Return a case answered by one response, given in YAML's flow style."""
    text = f"""
cases: [{{name: c, request: {{method: {method}, path: /, body: '{of}'}}, upstream: up}}]
upstreams: {{up: {canned}}}
"""
    return read_cases(text)["c"]


def test_request_has_the_lines_that_routing_sees() -> None:
    """The case's in file order, lower-cased, without proxy control; ours behind them."""
    request = read_cases(CASES)["chat"].request(b"")

    assert request.target == b"/v1/chat/completions?a=1"
    assert (request.method, request.authority, request.scheme) == (
        b"POST",
        b"localhost:8899",
        b"http",
    )
    assert request.id == "parity-chat"
    assert request.headers.lines == [
        (b"content-type", b"application/json"),
        (b"x-b", "é".encode()),
        (b"a-c", b""),
        (b"content-length", b"2"),
        (b"x-forwarded-proto", b"http"),
        (b"x-request-id", b"parity-chat"),
    ]


def test_request_without_body_declares_no_length() -> None:
    """And a case without a response expects no call."""
    case = read_cases(CASES)["list"]

    assert case.canned is None
    assert [name for name, _ in case.headers()] == [b"x-forwarded-proto", b"x-request-id"]


def test_only_a_whole_response_declares_its_length() -> None:
    """A stream's end is not known beforehand."""
    whole = read_cases(CASES)["chat"].canned
    cut = case_of("{status: 200, chunks: [ab, c]}").canned
    without = case_of("{status: 204}").canned

    assert whole is not None
    assert cut is not None
    assert without is not None
    assert whole.headers().lines == [(b"x-up", b"1"), (b"content-length", b"2")]
    assert cut.headers().lines == without.headers().lines == []
    assert (cut.body, cut.chunks, cut.is_stream) == (b"abc", (b"ab", b"c"), True)


@pytest.mark.parametrize(
    ("canned", "method", "has_phase"),
    [
        ("{status: 200, body: x}", "POST", True),
        ("{status: 200, chunks: []}", "POST", True),
        ("{status: 200, body: ''}", "POST", False),
        ("{status: 200, body: x}", "HEAD", False),
        ("{status: 204, body: x}", "POST", False),
        ("{status: 304, body: x}", "POST", False),
    ],
)
def test_body_phase_is_skipped_where_no_body_comes(
    canned: str, method: str, *, has_phase: bool
) -> None:
    """HEAD, 204, 304 and an empty body."""
    assert case_of(canned, method).is_answered_with_body is has_phase


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("upstream: whole", "upstream: hole", "chat: there is no response 'hole'"),
        ("name: list", "name: chat", "chat is there twice"),
        ("[X-Up, '1']", "[X-Up]", r"\$.upstreams"),
        ("[x-b, 'é']", "[x-b, 'é', z]", r"\$.cases\[0\].request.headers"),
        ("path: /v1/models", "path: /v1/models, bdoy: x", "bdoy"),
    ],
)
def test_corpus_of_another_form_is_refused(old: str, new: str, says: str) -> None:
    """A slip in a corpus must not pass for a case that expects nothing."""
    assert old in CASES

    with pytest.raises(ValueError, match=says):
        read_cases(CASES.replace(old, new))
