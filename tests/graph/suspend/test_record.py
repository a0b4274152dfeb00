"""What is kept of a run's finished steps."""

from collections.abc import Mapping

import msgspec
import pytest

from vsr.codec.chat_reply import Reply, ReplyUsage, TokenLogprob, ToolCall
from vsr.errors import DeadlineExceeded, GraphFailed
from vsr.graph.suspend.record import Record, can_keep, decode_record
from vsr.graph.value import BranchOutcome, Failure

REPLY = Reply(
    "m",
    "told",
    tool_calls=(ToolCall("x", "look", "{}"),),
    usage=ReplyUsage(1, 2, 3),
    logprobs=(TokenLogprob("t", -0.5, (("u", -1.0),)),),
    body=b'{"odd": "\\ud83d"}\xff',
    tool_rounds=(("y",),),
)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Reply, REPLY),
        (Failure | None, Failure("late", "deadline_exceeded")),
        (tuple[BranchOutcome[Reply], ...], (BranchOutcome(0, REPLY, None, 0), BranchOutcome(1))),
        (object, [1, None, {"a": "b"}]),
        (Mapping[str, object], {"a": [1]}),
    ],
)
def test_value_comes_back_as_it_was(kind: object, value: object) -> None:
    """Also after another round, in which it is only handed on."""
    record = Record()
    record.note("loop[0]/ask", value)

    again = decode_record(decode_record(record.encode()).encode())

    assert can_keep(kind)
    assert again.has("loop[0]/ask")
    assert again.value("loop[0]/ask", kind) == value
    assert not again.has("loop[1]/ask")


def test_failure_comes_back_as_what_the_client_is_told() -> None:
    """Whatever class it was of, message, code and status decide what is made of it."""
    record = Record()
    record.note_failure("ask", DeadlineExceeded())

    error = decode_record(record.encode()).failures["ask"].error()

    assert (str(error), error.code, error.status) == (
        "upstream request timeout",
        "deadline_exceeded",
        504,
    )


@pytest.mark.parametrize("encoded", [b"[]", b'{"values": 1}', b'{"failures": {"a": {}}}'])
def test_what_is_no_record_is_refused(encoded: bytes) -> None:
    """As after an update."""
    with pytest.raises(GraphFailed):
        decode_record(msgspec.Raw(encoded))


def test_value_of_another_type_is_refused() -> None:
    """A step must not get what its type says that it never is."""
    record = decode_record(msgspec.Raw(b'{"values": {"ask": {"content": 1}}}'))

    with pytest.raises(GraphFailed):
        record.value("ask", Reply)


@pytest.mark.parametrize("kind", [complex, Reply | ReplyUsage, list[complex]])
def test_type_that_no_json_holds_cannot_be_kept(kind: object) -> None:
    """Nor one of which its JSON would not tell which it is."""
    assert not can_keep(kind)
