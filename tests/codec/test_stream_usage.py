"""Usage of a stream: demanded, read, and hidden."""

import json
from itertools import pairwise
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference_dir import reference_dir
from vsr.codec.envelope import open_envelope
from vsr.codec.stream_usage import (
    ReportedUsage,
    StreamUsage,
    UsageDemand,
    demand_usage,
    read_reported,
)

USAGE = '{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}'
KNOWN = ReportedUsage(prompt_tokens=9, completion_tokens=2)
TEXT = 'data: {"id":"c","choices":[{"delta":{"content":"say \\"usage\\""}}]}\n\n'
NULL_USAGE = 'data: {"id":"c","choices":[{"delta":{}}],"usage": null}\n\n'
COMPACT_NULL = NULL_USAGE.replace(": null", ":null")
LAST = f'data: {{"id":"c","choices":[ 1.10 ],"usage":{USAGE},"a":{{"b" : 1e2}}}}\n\n'
LAST_WITHOUT = 'data: {"a":{"b" : 1e2},"choices":[ 1.10 ],"id":"c"}\n\n'
ONLY_USAGE = f'data: {{"id":"c","choices":[],"usage":{USAGE}}}\n\n'
INNER = f'data: {{"id":"c","x_groq":{{"usage":{USAGE}}}}}\n\n'
DONE = "data: [DONE]\n\n"


def run(stream: StreamUsage, pieces: list[bytes]) -> bytes:
    """Return all that comes out."""
    return b"".join([stream.feed(piece) for piece in pieces]) + stream.close()


@pytest.mark.parametrize(
    ("body", "options", "hides"),
    [
        ('{"stream":true}', '{"include_usage":true}', True),
        ('{"stream":true,"stream_options":null}', '{"include_usage":true}', True),
        ('{"stream":true,"stream_options":{}}', '{"include_usage":true}', True),
        (
            '{"stream":true,"stream_options":{"include_usage":false,"x": 1.10}}',
            '{"include_usage":true,"x": 1.10}',
            True,
        ),
        (
            '{"stream":true,"stream_options":{"include_obfuscation":false}}',
            '{"include_obfuscation":false,"include_usage":true}',
            True,
        ),
        ('{"stream":true,"stream_options":{"include_usage":true}}', None, False),
        ('{"stream":true,"stream_options":7}', None, False),
        ('{"stream":false}', None, False),
        ("{}", None, False),
        ('{"stream_options":{}}', None, False),
    ],
)
def test_demand_adds_to_the_options(body: str, options: str | None, *, hides: bool) -> None:
    """The client's other options stay byte for byte; who asked already changes nothing."""
    demand = demand_usage(open_envelope(body.encode()).members)

    changes = {} if options is None else {"stream_options": options.encode()}
    assert demand == UsageDemand(changes, hides=hides)


def test_recorded_stream_comes_out_as_recorded() -> None:
    """The chunks of `streaming-code-route`, read by read; the end of the stream gives the last."""
    folder = reference_dir() / "parity-corpus"
    cases = yaml.safe_load((folder / "cases.yaml").read_text(encoding="utf-8"))
    expected: dict[str, Any] = yaml.safe_load(
        (folder / "expected.yaml").read_text(encoding="utf-8")
    )
    stream = StreamUsage(hides=True)
    stream.holds_done = True

    chunks = [stream.feed(chunk.encode()) for chunk in cases["upstreams"]["chat-sse"]["chunks"]]
    chunks.append(stream.close())

    normalised = [chunk.decode().replace("1700000000", "0") for chunk in chunks]
    assert normalised == expected["streaming-code-route"]["response"]["chunks"]
    assert stream.usage == KNOWN


@pytest.mark.parametrize(
    ("received", "sent"),
    [
        (TEXT + LAST + DONE, TEXT + LAST_WITHOUT + DONE),
        (TEXT + ONLY_USAGE + DONE, TEXT + DONE),
        (TEXT + NULL_USAGE + ONLY_USAGE + DONE, TEXT + NULL_USAGE + DONE),
        (COMPACT_NULL + ONLY_USAGE + COMPACT_NULL, COMPACT_NULL + COMPACT_NULL),
        (LAST + TEXT + LAST, LAST_WITHOUT + TEXT + LAST_WITHOUT),
        (INNER + LAST, INNER + LAST_WITHOUT),
        (LAST.strip(), LAST_WITHOUT.strip()),
        (LAST[:-1], LAST_WITHOUT[:-1]),
        ("\n\n\n" + ONLY_USAGE + "\n" + TEXT, "\n\n\n" + "\n" + TEXT),
        ("\ufeff" + LAST + DONE, "\ufeff" + LAST_WITHOUT + DONE),
        (": ping\nid: 1\n" + LAST + ": ping\n\n", ": ping\nid: 1\n" + LAST_WITHOUT + ": ping\n\n"),
        (LAST + DONE + ": bye\n\n", LAST_WITHOUT + DONE + ": bye\n\n"),
        (
            f'data: {{"choices":[1],\ndata: "usage":{USAGE}}}\n\n',
            'data: {"choices":[1]}\n\n',
        ),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@settings(max_examples=25)
@given(cuts=st.lists(st.integers(0, 1000), max_size=8))
def test_hidden_usage_is_taken_out_in_any_split(
    received: str, sent: str, end: str, cuts: list[int]
) -> None:
    """What is left stays byte for byte, whatever ends the lines and wherever the bytes are cut."""
    body = received.replace("\n", end).encode()
    places = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    stream = StreamUsage(hides=True)

    out = run(stream, [body[start:stop] for start, stop in pairwise(places)])

    assert out == sent.replace("\n", end).encode()
    assert stream.usage == KNOWN


@given(cuts=st.lists(st.integers(0, 1000), max_size=8))
def test_demanded_usage_is_seen_and_passes_at_once(cuts: list[int]) -> None:
    """A client that asked gets every byte in the call that brought it."""
    body = (TEXT + NULL_USAGE + LAST + ONLY_USAGE + DONE).encode()
    places = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    stream = StreamUsage(hides=False)

    for start, stop in pairwise(places):
        assert stream.feed(body[start:stop]) == body[start:stop]

    assert stream.close() == b""
    assert stream.usage == KNOWN


def test_done_waits_only_behind_a_changed_chunk() -> None:
    """It goes out with the next bytes, or at the end; without a change it does not wait."""
    stream = StreamUsage(hides=True)
    stream.holds_done = True

    assert stream.feed((TEXT + DONE).encode()) == (TEXT + DONE).encode()
    assert stream.feed((LAST + DONE).encode()) == LAST_WITHOUT.encode()
    assert stream.feed(b": x\n\n") == DONE.encode() + b": x\n\n"
    assert stream.close() == b""


@pytest.mark.parametrize(
    "event",
    [
        'data: {"usage":{"prompt_tokens":9}',
        "data: [DONE]",
        'data: ["usage"]',
        'data: {"usage":null}',
        'data: {"a":"\\ud83d","usage":{}}',
        'event: "usage"',
        ': {"usage":{}}',
        'data: {"usage"\t:\n data: null}',
        "data: " + '{"usage":' * 5000,
    ],
)
def test_what_is_no_usage_passes_and_stays_unknown(event: str) -> None:
    """Malformed chunks are the client's to see; they never raise."""
    stream = StreamUsage(hides=True)
    body = f"{event}\n\n".encode()

    assert run(stream, [body]) == body
    assert stream.usage is None


def test_event_over_the_bound_passes_uncounted_in_any_split() -> None:
    """Memory is bounded, and the usage stays unknown."""
    body = (ONLY_USAGE + TEXT).encode()

    for cut in range(len(body)):
        stream = StreamUsage(hides=True, max_event_bytes=len(ONLY_USAGE) - 1)
        assert run(stream, [body[:cut], body[cut:]]) == body
        assert stream.usage is None


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (USAGE, KNOWN),
        ('{"input_tokens":9,"output_tokens":2}', KNOWN),
        ('{"completion_tokens":2}', ReportedUsage(completion_tokens=2)),
        ('{"prompt_tokens":-1,"completion_tokens":"2"}', ReportedUsage()),
        ('{"prompt_tokens":1.5,"completion_tokens":true}', ReportedUsage()),
        (
            f'{USAGE[:-1]},"prompt_tokens_details":{{"cached_tokens":7,"cache_write_tokens":5}}}}',
            ReportedUsage(9, 2, 7, 2),
        ),
        (
            f'{USAGE[:-1]},"completion_tokens_details":{{"reasoning_tokens":1}}}}',
            ReportedUsage(9, 2, reasoning_tokens=1),
        ),
        (
            '{"input_tokens":9,"output_tokens":2,"input_tokens_details":{"cached_tokens":12}}',
            ReportedUsage(9, 2, 9),
        ),
        ('{"prompt_tokens":9,"prompt_tokens_details":null}', ReportedUsage(9)),
        ('{"prompt_tokens_details":{"cached_tokens":3}}', ReportedUsage(cached_tokens=3)),
        ("[]", None),
        ("7", None),
        ("null", None),
        ("{", None),
    ],
)
def test_reported_counts_are_read(usage: str, expected: ReportedUsage | None) -> None:
    """Each count on its own: one that is odd is unknown, parts never exceed the whole."""
    assert read_reported(usage.encode()) == expected


@given(members=st.dictionaries(st.text(max_size=4), st.integers(), max_size=4))
def test_remaining_members_are_sorted(members: dict[str, int]) -> None:
    """By name; the values are the same."""
    chunk = json.dumps(members | {"usage": {}}, ensure_ascii=False)
    stream = StreamUsage(hides=True)

    out = run(stream, [f"data: {chunk}\n\n".encode()])

    left = {name: value for name, value in members.items() if name != "usage"}
    assert json.loads(out.removeprefix(b"data: ")) == left
    assert list(json.loads(out.removeprefix(b"data: "))) == sorted(left)
