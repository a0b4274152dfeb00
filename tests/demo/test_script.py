"""What a demo model's script makes of one call."""

import pytest

from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.errors import InvalidRequest
from vsr.headers import Headers

NO_HEADERS = Headers()


def test_answer_names_the_model_and_echoes_the_message() -> None:
    """A reader sees from the text alone who answered what."""
    answer = Script(model="m1").answer("Hello\n  there")

    assert answer.text() == "m1 says: Hello there"
    assert list(answer.pieces()) == ["m1", " says:", " Hello", " there"]
    assert answer.tokens == 4


def test_answer_bounds_the_echo() -> None:
    """However long the message, the answer stays short."""
    text = Script(model="m", reply="{echo}").answer("é" * 10_000_000).text()

    assert text == "é" * 64


def test_answer_leaves_placeholders_in_the_message_alone() -> None:
    """What a user writes is no template."""
    text = Script(model="m", reply="{model}: {echo}").answer("{model} {echo} {0}").text()

    assert text == "m: {model} {echo} {0}"


@pytest.mark.parametrize(
    ("reply", "chunks", "pieces"),
    [
        ("a b", 5, ["a", " b", "a", " b", "a"]),
        ("a b c", 2, ["a", " b"]),
        ("", None, [""]),
        (" a  b\n", None, [" a", "  b", "\n"]),
    ],
)
def test_answer_repeats_or_cuts_its_words_to_the_number_of_chunks(
    reply: str, chunks: int | None, pieces: list[str]
) -> None:
    """`chunks` decides how many pieces there are; without it all of the text is there, once."""
    answer = Script(reply=reply, chunks=chunks).answer("")

    assert list(answer.pieces()) == pieces
    assert answer.tokens == len(pieces)


def test_answer_fills_pieces_up_to_their_least_size() -> None:
    """Large streams need no large text."""
    answer = Script(reply="a bcdef", piece_bytes=4).answer("")

    assert list(answer.pieces()) == ["a...", " bcdef"]


def test_for_call_takes_faults_in_order_and_then_the_lasting_one() -> None:
    """A number is a status; after the sequence, `fault` holds."""
    script = Script(faults=(503, None, Fault.SILENCE), fault=429)

    calls = [script.for_call(number, NO_HEADERS) for number in range(4)]

    assert [(call.fault, call.status) for call in calls] == [
        (Fault.STATUS, 503),
        (None, 503),
        (Fault.SILENCE, 503),
        (Fault.STATUS, 429),
    ]
    assert all(call.faults == () for call in calls)


def test_for_call_has_no_fault_when_the_call_is_not_counted() -> None:
    """Probes neither meet nor use up scripted faults."""
    script = Script(faults=(503,), fault=Fault.SILENCE)

    assert script.for_call(None, NO_HEADERS).fault is None


@pytest.mark.parametrize("fault", list(Fault))
def test_for_call_takes_any_fault_from_the_request(fault: Fault) -> None:
    """The header comes before the script."""
    headers = Headers([(b"x-demo-fault", fault.encode())])

    assert Script(fault=500).for_call(0, headers).fault is fault


def test_for_call_takes_numbers_from_the_request() -> None:
    """Each header sets its own field; a status alone is a fault."""
    headers = Headers(
        [
            (b"x-demo-latency-ms", b"250"),
            (b"x-demo-chunks", b"7"),
            (b"x-demo-cut-after", b"0"),
            (b"x-demo-status", b"429"),
        ]
    )

    call = Script().for_call(0, headers)

    assert (call.latency_s, call.chunks, call.cut_after) == (0.25, 7, 0)
    assert (call.fault, call.status) == (Fault.STATUS, 429)


def test_for_call_lets_the_named_fault_win_over_the_status() -> None:
    """`x-demo-status` is a setting when a fault is named beside it."""
    headers = Headers([(b"x-demo-fault", b"silence"), (b"x-demo-status", b"500")])

    assert Script().for_call(0, headers).fault is Fault.SILENCE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"x-demo-fault", b"nonsense"),
        (b"x-demo-fault", b"\xff"),
        (b"x-demo-status", b"199"),
        (b"x-demo-status", b"600"),
        (b"x-demo-status", "\u0665\u0660\u0663".encode()),
        (b"x-demo-latency-ms", b"-1"),
        (b"x-demo-latency-ms", b"600001"),
        (b"x-demo-latency-ms", b"9" * 5000),
        (b"x-demo-chunks", b"0"),
        (b"x-demo-cut-after", b""),
    ],
)
def test_for_call_refuses_headers_without_a_sound_value(name: bytes, value: bytes) -> None:
    """The error names the header, so that a typing mistake is no silent success."""
    with pytest.raises(InvalidRequest, match=name.decode()):
        Script().for_call(0, Headers([(name, value)]))
