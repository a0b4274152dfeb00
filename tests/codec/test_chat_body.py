"""A chat-completions request that is edited member by member."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.codec.chat_body import ChatBody, new_body, read_body
from vsr.errors import InvalidRequest


def _body(**members: object) -> ChatBody:
    return read_body(json.dumps({"messages": [], **members}).encode())


def _talk(*messages: object) -> ChatBody:
    return _body(messages=messages)


def _decoded(body: ChatBody) -> dict[str, object]:
    decoded = json.loads(body.encode())
    assert isinstance(decoded, dict)
    return decoded


def _user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[]", "request JSON is invalid"),
        (b"{", "request JSON is invalid"),
        (b'{"messages":[],"messages":[]}', "request JSON is invalid"),
        (b'{"model":"m"}', "messages field is required"),
        (b'{"messages":{}}', "messages field must be an array"),
    ],
)
def test_read_body_refuses_what_is_no_request(body: bytes, message: str) -> None:
    """Only a JSON object with a list of messages, each member named once, is a request."""
    with pytest.raises(InvalidRequest, match=message):
        read_body(body)


def test_encode_keeps_the_bytes_of_every_value() -> None:
    """Numbers, escapes and white space inside a value that no edit names stay as they came."""
    source = b'{"temperature":1.50e0,"messages":[ {"content" : "\\u00e9"} ],"x":{"a": 1}}'

    edited = read_body(source).with_member("model", "m")

    assert read_body(source).encode() == source
    assert edited.encode() == source[:-1] + b',"model":"m"}'


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=4), st.text(max_size=5), _JSON)
def test_with_member_changes_one_member_and_keeps_the_order(
    members: dict[str, object], name: str, value: object
) -> None:
    """A member is set in its place, a new one goes last, and the edited body is not touched."""
    before = {"messages": [], **members}
    before["messages"] = []
    body = read_body(json.dumps(before).encode())

    edited = body.with_member(name, value)

    assert list(_decoded(edited).items()) == list({**before, name: value}.items())
    assert _decoded(body) == before


def test_without_takes_members_out() -> None:
    """Named members go, others keep their order; a name that is not there changes nothing."""
    body = _body(model="m", n=1, user="u").without("n", "nothing")

    assert list(_decoded(body)) == ["messages", "model", "user"]


def test_tool_free_keeps_what_does_not_call() -> None:
    """Declared tools and the choice among them go; `parallel_tool_calls` and results stay."""
    tool = {"role": "tool", "tool_call_id": "t", "content": "r"}
    body = _body(
        messages=[tool],
        tools=[{}],
        tool_choice="auto",
        functions=[{}],
        function_call="auto",
        parallel_tool_calls=False,
    )

    assert _decoded(body.tool_free()) == {"messages": [tool], "parallel_tool_calls": False}


@pytest.mark.parametrize(
    ("members", "has_tools"),
    [
        ({}, False),
        ({"tools": []}, False),
        ({"tools": None, "functions": []}, False),
        ({"tools": {"type": "function"}}, False),
        ({"tools": [{}]}, True),
        ({"functions": [{}]}, True),
    ],
)
def test_has_tools_means_a_list_with_an_entry(
    members: dict[str, object], *, has_tools: bool
) -> None:
    """An empty list, null or another type declares no tool; either name of the member counts."""
    assert _body(**members).has_tools is has_tools


def test_with_stream_forces_usage_and_keeps_other_options() -> None:
    """A streamed call always reports usage, whatever the client's options say."""
    options = {"include_usage": False, "x": 1}
    body = _body(stream=False, stream_options=options)

    assert _decoded(body.with_stream(is_streaming=True)) == {
        "messages": [],
        "stream": True,
        "stream_options": {"include_usage": True, "x": 1},
    }
    assert _decoded(_body(stream_options="odd").with_stream(is_streaming=True)) == {
        "messages": [],
        "stream_options": {"include_usage": True},
        "stream": True,
    }


def test_with_stream_of_a_plain_call_writes_false() -> None:
    """`stream` is always written, and stream options would be refused without a stream."""
    body = _body(stream_options={"include_usage": True}).with_stream(is_streaming=False)

    assert _decoded(body) == {"messages": [], "stream": False}


@pytest.mark.parametrize(("count", "asked"), [(0, 1), (1, 1), (5, 5), (9, 5)])
def test_with_logprobs_asks_for_one_to_five(count: int, asked: int) -> None:
    """The number of alternatives is clamped to what every backend allows."""
    body = _body(logprobs=False, top_logprobs=20).with_logprobs(count)

    assert _decoded(body) == {"messages": [], "logprobs": True, "top_logprobs": asked}


def test_streaming_flags() -> None:
    """Only `true` asks for a stream or for its usage."""
    assert _body(stream=True, stream_options={"include_usage": True}).is_streaming
    assert _body(stream=True, stream_options={"include_usage": True}).wants_usage
    assert not _body(stream="true", stream_options={"include_usage": 1}).is_streaming
    assert not _body(stream_options={"include_usage": 1}).wants_usage
    assert not _body(stream_options=[]).wants_usage


def test_append_and_replace_change_the_end_of_the_conversation() -> None:
    """A stage message goes last, or in the place of the last message, whatever its role."""
    body = _talk({"role": "system", "content": "s"}, {"role": "assistant", "content": "a"})

    assert _decoded(body.append_user("p"))["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "assistant", "content": "a"},
        _user("p"),
    ]
    assert _decoded(body.replace_last("p"))["messages"] == [
        {"role": "system", "content": "s"},
        _user("p"),
    ]
    assert body.append_user("p").message_count == 3


def test_edits_of_no_messages() -> None:
    """An empty list has no last message to replace; without the member there is no list at all."""
    assert _talk().replace_last("p").message_count == 0
    assert _talk().append_user("p").message_count == 1
    without = _talk().without("messages")
    assert without.append_user("p").encode() == b"{}"
    assert without.replace_last("p").encode() == b"{}"


def test_fresh_is_the_only_message() -> None:
    """A fresh prompt drops the conversation, a new body everything."""
    body = _body(messages=[_user("q")], temperature=1)

    assert _decoded(body.fresh("p")) == {"messages": [_user("p")], "temperature": 1}
    assert _decoded(new_body("p")) == {"messages": [_user("p")]}


def test_appended_takes_json_and_members() -> None:
    """Stored messages come back byte for byte; members are encoded."""
    raw = msgspec.Raw(b'{"role": "assistant", "content": null}')

    body = _talk(_user("q")).appended([raw, {"role": "tool"}])

    assert bytes(raw) in body.encode()
    assert body.message_count == 3


def test_trailing_tool_messages_are_the_last_run() -> None:
    """Tool results in the middle of the conversation answer older calls."""
    old = {"role": "tool", "tool_call_id": "0"}
    last = [{"role": "tool", "tool_call_id": "1", "content": "a"}, {"role": "tool", "x": [1]}]

    assert _talk(old, _user("q"), *last).trailing_tool_messages == tuple(last)
    assert _talk(old, _user("q")).trailing_tool_messages == ()
    assert _talk(*last).trailing_tool_messages == tuple(last)


def test_a_string_that_is_no_text_is_the_clients_fault() -> None:
    """Bytes that are not UTF-8 pass unread, and are refused where they are read."""
    body = read_body(b'{"messages":[{"role":"user","content":"\xff"}]}')

    with pytest.raises(InvalidRequest):
        _ = body.question
