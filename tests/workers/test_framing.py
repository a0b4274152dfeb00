"""Messages as frames."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from vsr.errors import Problem
from vsr.workers.framing import FrameReader, Received, encode
from vsr.workers.messages import (
    Answered,
    Commit,
    Drain,
    Order,
    Part,
    Place,
    Refused,
    Report,
    Sockets,
    Word,
)

ORDERS: list[tuple[msgspec.Struct, int]] = [
    (Word(), 1),
    (Sockets((Place("::", 1), Place("127.0.0.1", 65_535))), 2),
    (Part(b"\x00" * 300), 0),
    (Part(b""), 0),
    (Commit(7), 0),
    (Drain(), 0),
]


@given(st.lists(st.sampled_from(ORDERS)), st.data())
def test_messages_are_the_same_however_they_arrive(
    sent: list[tuple[msgspec.Struct, int]], data: st.DataObject
) -> None:
    """Each with its descriptors, which come with the first byte of its frame at the latest."""
    reader: FrameReader[Order] = FrameReader(msgspec.msgpack.Decoder(Order))
    stream, at, descriptors = b"", {}, 0
    expected = []
    for message, count in sent:
        numbers = tuple(range(descriptors, descriptors + count))
        descriptors += count
        at[len(stream)] = numbers
        expected.append(Received(message, numbers))
        stream += encode(message, count)

    got = []
    start = 0
    while start < len(stream):
        end = data.draw(st.integers(start + 1, len(stream)))
        rights = [each for where, some in at.items() if start <= where < end for each in some]
        got.extend(reader.feed(stream[start:end], rights))
        start = end

    assert got == expected
    assert reader.abandoned() == ()


def test_reports_are_read_as_they_were_written() -> None:
    """Problems and answers with all that they hold."""
    reader: FrameReader[Report] = FrameReader(msgspec.msgpack.Decoder(Report))
    problem = Problem("listeners[a]", "what", "why", "mend", "router.yaml", 3, "unsupported")
    reports = [Refused(3, (problem,)), Answered(4, b"\x00bytes"), Answered(5, None)]

    got = [each.message for report in reports for each in reader.feed(encode(report))]

    assert got == reports


def test_descriptors_of_a_broken_frame_are_given_back() -> None:
    """Somebody has to close them."""
    reader: FrameReader[Order] = FrameReader(msgspec.msgpack.Decoder(Order))

    assert reader.feed(encode(Word(), 1)[:-1], [9]) == []
    assert reader.abandoned() == (9,)
