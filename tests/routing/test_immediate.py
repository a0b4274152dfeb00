"""An answer of the Router itself, as it is rendered."""

import pytest

from vsr.routing.effect import MAX_EDITS, HeaderEdit, ImmediateResponse, render_immediate


def edits(*pairs: tuple[bytes, bytes], append: bool = False) -> tuple[HeaderEdit, ...]:
    """Return edits from names and values."""
    return tuple(HeaderEdit(name, value, append) for name, value in pairs)


@pytest.mark.parametrize(("given_status", "status"), [(200, 200), (503, 503), (0, 200), (199, 200)])
def test_immediate_status_is_a_final_one(given_status: int, status: int) -> None:
    """Below 200 there is no answer."""
    assert render_immediate(ImmediateResponse(given_status))[0] == status


def test_immediate_body_gets_length_and_type() -> None:
    """Plain text unless the phase says otherwise; a length of its own making is not believed."""
    plain = render_immediate(ImmediateResponse(200, body=b"hello"))
    typed = render_immediate(
        ImmediateResponse(
            200,
            edits((b"content-length", b"9"), (b"content-type", b"text/html"), (b"x", b"1")),
            b"hi",
        )
    )

    assert plain[1] == [(b"content-type", b"text/plain"), (b"content-length", b"5")]
    assert sorted(typed[1]) == [
        (b"content-length", b"2"),
        (b"content-type", b"text/html"),
        (b"x", b"1"),
    ]


def test_immediate_answer_without_body_has_neither_length_nor_type() -> None:
    """Even if the phase set them."""
    wanted = edits((b"content-length", b"9"), (b"content-type", b"text/html"), (b"x", b"1"))

    assert render_immediate(ImmediateResponse(401, wanted))[1] == [(b"x", b"1")]


def test_immediate_answer_ignores_protected_headers() -> None:
    """The same rules hold on the empty head of an answer."""
    wanted = edits((b"host", b"h"), (b"x-envoy-a", b"1"), (b":method", b"GET"), (b"x", b"1"))

    assert render_immediate(ImmediateResponse(200, wanted))[1] == [(b"x", b"1")]


@pytest.mark.parametrize("name", [b":status", b":path"])
def test_immediate_answer_has_no_pseudo_header_among_its_lines(name: bytes) -> None:
    """On the wire of HTTP/1.1 it would be a broken field."""
    _, lines = render_immediate(ImmediateResponse(200, edits((name, b"500")), b"x"))

    assert not [line for line in lines if line[0][:1] == b":"]


def test_immediate_answer_survives_a_failing_mutation() -> None:
    """The mutation is dropped, the answer is given."""
    wanted = edits(*[(b"x-%d" % index, b"") for index in range(MAX_EDITS + 1)])

    status, lines = render_immediate(ImmediateResponse(403, wanted, b"no"))

    assert status == 403
    assert lines == [(b"content-type", b"text/plain"), (b"content-length", b"2")]
