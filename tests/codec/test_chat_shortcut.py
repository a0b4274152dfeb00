"""Messages whose contents are all strings: one decoding, and the same answers as entry by entry."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import JSON_VALUES, MESSAGES, TEXT, json_texts
from vsr.codec.chat_facts import ChatFacts, read_facts
from vsr.codec.chat_messages import read_conversation
from vsr.codec.chat_tokens import EnvelopeSize, measure
from vsr.errors import InvalidRequest

NOTHING = msgspec.Raw(b"null")

_roles = st.sampled_from(
    ["user", "assistant", "system", "developer", "tool", "function", "USER", " tool ", "", "x"]
)
_texts = st.fixed_dictionaries(
    {},
    optional={
        "role": _roles | JSON_VALUES,
        "content": TEXT | st.none() | JSON_VALUES,
        "name": TEXT | JSON_VALUES,
        "tool_call_id": TEXT | JSON_VALUES,
        "refusal": TEXT | JSON_VALUES,
        "reasoning_content": TEXT | JSON_VALUES,
        "tool_calls": JSON_VALUES
        | st.lists(st.fixed_dictionaries({"function": st.fixed_dictionaries({"name": TEXT})})),
        "function_call": JSON_VALUES | st.fixed_dictionaries({"name": TEXT, "arguments": TEXT}),
        "other": JSON_VALUES,
    },
)
_plain = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "developer"]), "content": TEXT},
    optional={
        "name": TEXT,
        "refusal": TEXT | st.none(),
        "tool_calls": JSON_VALUES,
        "function_call": JSON_VALUES,
    },
)
_messages = (
    st.lists(_plain, max_size=6)
    | st.lists(_plain | _texts, max_size=5)
    | st.lists(_plain | MESSAGES | JSON_VALUES, max_size=5)
    | JSON_VALUES
)


def _read(members: dict[str, msgspec.Raw]) -> tuple[ChatFacts, EnvelopeSize] | str:
    """Return what routing gets to know of a conversation, or how it is refused."""
    try:
        conversation = read_conversation(members)
        return read_facts(conversation), measure(conversation, members)
    except InvalidRequest as error:
        return error.code


def _check(raw: bytes) -> None:
    # Tools that are null say nothing, but they take the long way.
    short = _read({"messages": msgspec.Raw(raw)})

    assert short == _read({"messages": msgspec.Raw(raw), "tools": NOTHING})
    assert short == _read({"functions": NOTHING, "messages": msgspec.Raw(raw)})


@given(data=st.data())
@settings(deadline=None, max_examples=500)
def test_shortcut_tells_the_same_as_the_long_way(data: st.DataObject) -> None:
    """For any `messages`, odd ones included: the facts, and the bytes that count as tokens."""
    _check(data.draw(json_texts(data.draw(_messages))).encode())


@given(messages=st.lists(_plain, max_size=4), at=st.integers(0, 500), new=st.binary(max_size=2))
@settings(deadline=None, max_examples=300)
def test_shortcut_refuses_what_the_long_way_refuses(
    messages: list[dict[str, object]], at: int, new: bytes
) -> None:
    """Bytes inside strings that are not UTF-8, or broken otherwise, mean the same either way."""
    raw = json.dumps(messages, ensure_ascii=False).encode()
    at %= len(raw) + 1
    broken = raw[:at] + new + raw[at + 1 :]
    try:
        msgspec.json.decode(broken, type=msgspec.Raw)
    except msgspec.DecodeError:
        return  # not JSON: it does not get this far

    _check(broken)


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b"null",
        b"{}",
        b'"x"',
        b"[null]",
        b"[{}]",
        b'[{"content":"no role"}]',
        b'[{"role":null,"content":null}]',
        b'[{"role":"user"}]',
        b'[{"role":"\\u0075ser","content":"\\u00e9\\ud83d\\ude00"}]',
        b'[{"role":"user","content":"\\ud800"}]',
        b'[{"role":"user","content":"a\xff"}]',
        b'[{"role":"us\xffer","content":"a"}]',
        b'[{"role":"user","content":"a","name":"\xff"}]',
        b'[{"role":"user","content":"a","other":"\xff"}]',
        b'[{"role":"user","content":"a","tool_calls":"\xff"}]',
        b'[{"role":"tool","role":"user","content":"a"}]',
        b'[{"role":"user","role":"tool","content":"abc"}]',
        b'[{"role":"user","content":[],"content":"a"}]',
        b'[{"role":"user","content":"a","content":[{"type":"text","text":"b"}]}]',
        b'[{"role":"tool","content":"abc"}]',
        b'[{"role":"function","content":"abc"}]',
        b'[{"role":"user","content":"abc"},{"role":"tool","content":"d\\u00e9"}]',
        b'[{"role":"user","content":"a","tool_calls":null,"function_call":null}]',
        b'[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]',
        b'[{"role":"assistant","content":"","function_call":{"name":"f","arguments":"{}"}}]',
        b'[{"role":"user","content":5},{"role":"user","content":"a"}]',
        b'[{"role":"user","content":"a"},5]',
        b'[{"role":["user"],"content":"a"}]',
        b'[ {"role" : "user" , "content" : "a" } ]',
        b'[{"role":"user","content":"a","x":' + b"[" * 900 + b"]" * 900 + b"}]",
        b'[{"role":"user","content":"a","tool_calls":' + b"[" * 900 + b"]" * 900 + b"}]",
    ],
)
def test_odd_messages_are_read_alike(raw: bytes) -> None:
    """Each of what a decoder of a fixed shape might take for something else."""
    _check(raw)
