"""What is kept of a suspended run."""

import msgspec
import pytest

from tests.graph.suspend.runs import OWNER, STATE, suspended
from vsr.errors import GraphFailed
from vsr.graph.suspend.run import RunIdentity, check_identity, decode_run, encode_run


def test_run_survives_json() -> None:
    """Nothing of a run may change while it waits, not a byte of what is opaque."""
    run = suspended(request=b'{"x": 1.0,  "y":"\\u00e4"}')

    again = decode_run(encode_run(run))

    assert again == run
    assert again is not None
    assert bytes(again.request) == b'{"x": 1.0,  "y":"\\u00e4"}'


@pytest.mark.parametrize("encoded", [b"", b"{", b"{}", b"[]", b'"\xff"', b"[" * 100_000])
def test_decode_run_of_something_else_is_none(encoded: bytes) -> None:
    """A file that was cut off, or written by another release, is no run."""
    assert decode_run(encoded) is None


def test_check_identity_lets_the_same_request_go_on() -> None:
    """Parameters are the same values, however they are written."""
    check_identity(
        suspended(), msgspec.structs.replace(OWNER, params=msgspec.Raw(b'{"b": [2], "a": 1}'))
    )


@pytest.mark.parametrize(
    ("current", "message"),
    [
        (
            msgspec.structs.replace(OWNER, principal="mallory"),
            f'workflow tool state "{STATE}" not found or expired',
        ),
        (
            msgspec.structs.replace(OWNER, decision="other"),
            f'workflow tool state "{STATE}" belongs to another decision',
        ),
        (
            msgspec.structs.replace(OWNER, graph_hash="other"),
            f'workflow tool state "{STATE}" belongs to another version of its workflow',
        ),
        (
            msgspec.structs.replace(OWNER, params=msgspec.Raw(b'{"a":1,"b":[]}')),
            f'workflow tool state "{STATE}" belongs to another version of its workflow',
        ),
    ],
)
def test_check_identity_refuses(current: RunIdentity, message: str) -> None:
    """A stranger learns nothing; the owner learns what changed."""
    with pytest.raises(GraphFailed) as raised:
        check_identity(suspended(), current)

    assert str(raised.value) == message
