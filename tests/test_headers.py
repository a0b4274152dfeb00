"""Header lines of one message."""

from hypothesis import given
from hypothesis import strategies as st

from vsr.headers import HeaderLine, Headers

LINES: list[HeaderLine] = [
    (b":method", b"GET"),
    (b":path", b"/"),
    (b"x-a", b"1"),
    (b"x-b", b"2"),
    (b"x-a", b"3"),
]


def test_lines_keep_their_order_and_repetitions() -> None:
    """Nothing is merged."""
    headers = Headers(list(LINES))

    assert list(headers) == headers.lines == LINES
    assert len(headers) == 5
    assert headers.size_bytes() == sum(len(name) + len(value) for name, value in LINES)
    assert headers.pseudo_count() == 2


def test_first_value_is_the_value() -> None:
    """All of them are there to be asked for."""
    headers = Headers(list(LINES))

    assert headers.get(b"x-a") == b"1"
    assert headers.get_all(b"x-a") == [b"1", b"3"]
    assert headers.get(b"x-none") == b""
    assert headers.get(b"x-none", b"default") == b"default"
    assert headers.get_all(b"x-none") == []
    assert b"x-b" in headers
    assert b"x-none" not in headers


def test_representation_shows_names_only() -> None:
    """Values carry credentials, and representations end up in logs."""
    text = repr(Headers([(b"authorization", b"Bearer canary")]))

    assert "authorization" in text
    assert "canary" not in text


def test_equality_is_that_of_the_lines() -> None:
    """Order counts."""
    assert Headers(list(LINES)) == Headers(list(LINES))
    assert Headers(list(LINES)) != Headers(LINES[::-1])
    assert Headers() != "no headers"
    assert Headers([(b"a", b"1")]) != [(b"a", b"1")]


def test_copy_is_independent() -> None:
    """Each attempt changes its own."""
    headers = Headers(list(LINES))
    copy = headers.copy()

    copy.set(b"x-a", b"new")
    copy.append(b"x-c", b"4")
    copy.remove([b":path"])

    assert headers.lines == LINES


_names = st.sampled_from([b"x-a", b"x-b", b":path", b":status"])
_acts = st.lists(
    st.tuples(st.sampled_from(["get", "set", "append", "remove", "replace"]), _names, st.binary()),
    max_size=12,
)


@given(_acts)
def test_every_reading_is_up_to_date(acts: list[tuple[str, bytes, bytes]]) -> None:
    """Whatever was read before a change; pseudo-headers stay in front of the others."""
    headers = Headers()
    for act, name, value in acts:
        if act == "get":
            headers.get(name)
        elif act == "set":
            headers.set(name, value)
            assert headers.get_all(name) == [value]
        elif act == "append" and name[:1] != b":":
            headers.append(name, value)
            assert headers.lines[-1] == (name, value)
        elif act == "remove":
            headers.remove({name})
            assert name not in headers
        elif act == "replace":
            headers.replace_lines([line for line in headers.lines if line[0] != b"x-a"])

        for key in (b"x-a", b"x-b", b":path", b":status"):
            values = [line[1] for line in headers.lines if line[0] == key]
            assert headers.get_all(key) == values
            assert headers.get(key, b"none") == (values[0] if values else b"none")
            assert (key in headers) is bool(values)
        pseudo = [line for line in headers.lines if line[0][:1] == b":"]
        assert headers.lines[: headers.pseudo_count()] == pseudo
