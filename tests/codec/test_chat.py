"""Chat requests: checks on arrival, and what is read lazily."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import CHAT_REQUESTS, JSON_VALUES
from vsr.codec.chat import ChatRequest, read_chat
from vsr.errors import InvalidRequest

MESSAGES = [{"role": "user", "content": "hi"}]


def chat(**members: object) -> ChatRequest:
    """Read a request of these members, compact, with a model and one message by default."""
    body = {"model": "auto", "messages": MESSAGES} | members
    return read_chat(json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode())


def part_texts(content: object) -> str:
    """Return a content's text by the rule's own words."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(
        part["text"] for part in parts if part.get("type", "") in {"text", ""} and part.get("text")
    )


@given(CHAT_REQUESTS)
def test_chat_texts_follow_the_extraction_rules(body: dict[str, list[dict[str, object]]]) -> None:
    """The last non-empty user text is current; tool output and unknown roles are not read."""
    turns = [(m["role"], part_texts(m["content"])) for m in body["messages"]]
    users = [text for role, text in turns if role == "user" and text]
    others = [t for role, t in turns if role in {"system", "developer", "assistant"} and t]

    request = read_chat(json.dumps(body).encode())

    assert request.facts.current_user_text == (users[-1] if users else "")
    assert request.facts.prior_user_texts == users[:-1]
    assert request.facts.non_user_texts == others
    assert request.evaluation_text == (users[-1] if users else " ".join(others))
    assert request.context_text == " ".join(others + users[-1:])


@given(CHAT_REQUESTS)
def test_chat_counts_turns_by_role(body: dict[str, list[dict[str, object]]]) -> None:
    """Counts are of messages with that role, images only of user turns, calls of assistants."""
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    images = [
        part
        for message in messages
        if message["role"] == "user" and isinstance(message["content"], list)
        for part in message["content"]
        if part.get("type") in {"image_url", "input_image"}
    ]

    facts = read_chat(json.dumps(body).encode()).facts

    assert facts.user_messages == roles.count("user")
    assert facts.system_messages == roles.count("system")
    assert facts.assistant_messages == roles.count("assistant")
    assert facts.tool_messages == roles.count("tool")
    assert facts.has_developer_message == ("developer" in roles)
    assert facts.user_images == len(images)
    assert facts.tool_definitions == len(body.get("tools", []))
    assert facts.last_role == (roles[-1] if roles else "")
    assert facts.last_is_tool_result == (roles[-1:] == ["tool"])
    assert facts.last_user_follows_tool_result == (roles[-2:] == ["tool", "user"])


def test_chat_names_the_tools_an_assistant_called() -> None:
    """Every call counts; its function's name is kept if it has one."""
    calls = [{"function": {"name": "look"}}, {"function": {}}, {"id": "x"}]

    facts = chat(messages=[{"role": "assistant", "content": None, "tool_calls": calls}]).facts

    assert facts.tool_calls == 3
    assert facts.tool_call_names == ["look"]
    assert not facts.has_assistant_reply


def test_chat_sees_a_reply_only_with_text() -> None:
    """An assistant turn is a reply if it says something."""
    facts = chat(messages=[{"role": "assistant", "content": "yes"}]).facts

    assert facts.has_assistant_reply


@pytest.mark.parametrize(
    ("messages", "others"),
    [
        ([], {}),
        ([{}], {}),
        ([{"content": "text without a role"}], {}),
        ([None, 1, "x", []], {}),
        ([], {"tools": []}),
    ],
)
def test_chat_is_blank_without_text_and_facts(messages: object, others: dict[str, object]) -> None:
    """No role, no tool, no metadata, no text: there is nothing to evaluate."""
    assert chat(messages=messages, **others).is_blank


@pytest.mark.parametrize(
    ("messages", "others"),
    [
        ([{"role": "user", "content": ""}], {}),
        ([{"role": "narrator"}], {}),
        ([], {"tools": [{}]}),
        ([], {"functions": [{}]}),
        ([], {"metadata": {"a": "b"}}),
    ],
)
def test_chat_is_not_blank_with_any_fact(messages: object, others: dict[str, object]) -> None:
    """One fact is enough."""
    assert not chat(messages=messages, **others).is_blank


@pytest.mark.parametrize(
    ("messages", "tokens"),
    [
        ([{"role": "user", "content": "hello"}], 3 + 4),
        ([{"role": "user", "content": "é" * 6}], 4 + 4),
        ([{"role": "user", "content": "hello", "name": "bob"}], 3 + 4),
        ([{"role": "user", "content": ["part"]}], 1 + 6 + 4),
        ([{"role": "user", "content": 12345}], 1 + 5 + 4),
        ([{"role": "user", "content": {"type": "text", "text": "abcd"}}], 2 + 4),
        ([{"role": "user", "content": {"type": "image"}}], 1 + 8192 + 4),
        ([{"role": "user", "content": [{"type": " Input_Text ", "text": "abcd"}]}], 2 + 4),
        ([{"role": "user", "content": [{"type": "text", "text": 7}]}], 1 + 1 + 4),
        ([{"role": "user", "content": [{"type": "text", "text": None}]}], 1 + 4),
        ([{"role": "user", "content": [{"type": "text"}]}], 1 + 15 + 4),
        ([{"role": "user", "content": [{"type": 5, "text": ""}]}], 1 + 20 + 4),
        ([{"role": "user", "content": [{"text": "abcd"}]}], 1 + 15 + 4),
        ([{"role": "user", "content": [{"type": 5}]}], 1 + 10 + 4),
        ([{"role": "user", "content": [{"text": 7}]}], 1 + 10 + 4),
        ([{"role": "user", "content": [None]}], 1 + 4),
        ([{"role": "assistant", "content": [{"type": "image_url"}]}], 3 + 8192 + 4),
        ([{"role": "tool", "content": 'a"b'}], 1 + 6 + 8 + 4),
        ([{"role": " Function ", "content": "abc"}], 3 + 5 + 8 + 4),
        ([{"role": "tool", "tool_call_id": "1234"}], 2 + 8 + 4),
        ([{"role": "tool", "content": [{"type": "text"}, {"type": "image"}]}], 1 + 15 + 8192 + 12),
        ([{"role": "tool", "content": {"type": "image"}}], 1 + 8192 + 12),
        ([{"role": "tool", "content": 123}], 1 + 3 + 12),
        ([{"role": "user", "refusal": "abcd", "reasoning_content": "abcd"}], 3 + 4),
        ([{"role": 7, "name": 8, "content": "abcd"}], 1 + 2 + 4),
        ([{"role": 7, "name": "abcd", "content": "abcd"}], 2 + 1 + 4),
        ([{"role": 7, "name": None, "tool_calls": [{}], "x": 1}], 1 + 2 + 8 + 4),
        ([12, None, [3]], 2 + 3 + 3 * 4),
        ([{"role": "assistant", "tool_calls": "abc"}], 3 + 5 + 4),
        ([{"role": "assistant", "tool_calls": None}], 3 + 4),
        ([{"role": "assistant", "tool_calls": [{"id": "abcd"}, None]}], 3 + 13 + 2 * 8 + 4),
        (
            [{"role": "user", "tool_calls": [{"id": "1", "type": "2", "function": {"name": "3"}}]}],
            2 + 8 + 4,
        ),
        ([{"role": "user", "tool_calls": [{"function": {"arguments": {"a": 1}}}]}], 1 + 7 + 8 + 4),
        ([{"role": "user", "function_call": {"name": "abcd", "arguments": "{}"}}], 2 + 4 + 8 + 4),
        ([{"role": "user", "function_call": "auto"}], 1 + 6 + 4),
        ([{"role": "user", "function_call": None}], 1 + 4),
        ([], 0),
    ],
)
def test_token_count_weighs_messages(messages: object, tokens: int) -> None:
    """Text by four bytes a token, other JSON by the byte, images and framing by fixed amounts.

    Source: the component table of the reference's envelope floor.
    """
    assert chat(messages=messages).token_count == tokens


@pytest.mark.parametrize(
    ("members", "tokens"),
    [
        ({"tools": [{"a": 1}, {}], "functions": [None]}, 7 + 2 + 3 * 8),
        ({"tools": "abc", "functions": None}, 5),
        ({"tool_choice": "auto", "response_format": {}, "function_call": None}, 6 + 2),
        ({"max_tokens": 100}, 100),
        ({"max_tokens": 100, "max_completion_tokens": 30}, 30),
        ({"max_tokens": 100, "max_completion_tokens": None}, 100),
        ({"max_tokens": 100, "max_completion_tokens": 0}, 0),
        ({"max_tokens": 100, "max_completion_tokens": "ten"}, 5),
        ({"max_tokens": -1}, 2),
        ({"max_tokens": 1.5}, 3),
        ({"max_tokens": 10**30}, 2**63 - 1),
        ({"temperature": 0.5, "user": "abcdefgh"}, 0),
    ],
)
def test_token_count_weighs_the_other_members(members: dict[str, object], tokens: int) -> None:
    """Tools, formats and the output reserve count; a reserve that is no integer is just bytes."""
    assert chat(messages=[], **members).token_count == tokens


def test_token_count_uses_bytes_as_received() -> None:
    """Inner white space and escapes of structured values count."""
    request = read_chat(b'{"model":"a","messages":[],"tools":[{"a" : "\\u0041"}]}')

    assert request.token_count == len(b'{"a" : "\\u0041"}') + 8


def test_token_count_can_be_the_text_estimate() -> None:
    """Joined texts can outweigh the floor: parts are joined by spaces, which the floor ignores."""
    content = [{"type": "text", "text": "a"}] * 64
    text_bytes = 64 + 63

    assert chat(messages=[{"role": "user", "content": content}]).token_count == -(-text_bytes // 4)


@pytest.mark.parametrize(
    ("members", "message", "code", "param"),
    [
        ({"model": None}, "model is required", "model_required", None),
        ({"model": " "}, "model is required", "model_required", None),
        ({"messages": None}, "messages field is required", "invalid_request", "messages"),
    ],
)
def test_chat_requires_a_model_and_messages(
    members: dict[str, object], message: str, code: str, param: str | None
) -> None:
    """A missing model has a code of its own; a blank one is as good as missing."""
    body = {"model": "a", "messages": []} | members
    present = {name: value for name, value in body.items() if value is not None}

    with pytest.raises(InvalidRequest) as caught:
        read_chat(json.dumps(present).encode())

    assert (str(caught.value), caught.value.code) == (message, code)
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("messages", None, "messages field must be an array"),
        ("messages", {}, "messages field must be an array"),
        ("model", 1, "field model must be string, got Number"),
        ("model", -1, "field model must be string, got Number"),
        ("model", True, "field model must be string, got True"),
        ("model", False, "field model must be string, got False"),
        ("model", None, "field model must be string, got Null"),
        ("model", [], "field model must be string, got JSON"),
        ("model", {}, "field model must be string, got JSON"),
        ("stream", 1, "field stream must be boolean, got Number"),
        ("stream", "true", "field stream must be boolean, got String"),
        ("stream", None, "field stream must be boolean, got Null"),
        ("stream", [], "field stream must be boolean, got JSON"),
        ("metadata", "x", "field metadata must be object, got String"),
        ("metadata", None, "field metadata must be object, got Null"),
        (
            "metadata",
            {f"k{n}": "v" for n in range(33)},
            "metadata cannot contain more than 32 entries",
        ),
        ("metadata", {"a": 1}, "field metadata.a must be string, got non-string"),
        ("metadata", {"": "v"}, "metadata key length must be between 1 and 128 bytes"),
        ("metadata", {"é" * 65: "v"}, "metadata key length must be between 1 and 128 bytes"),
        ("metadata", {"k": "é" * 513}, 'metadata value for key "k" exceeds 1024 bytes'),
    ],
)
def test_chat_refuses_wrong_members(name: str, value: object, message: str) -> None:
    """Each fault has the reference's message and names its member."""
    with pytest.raises(InvalidRequest) as caught:
        chat(**{name: value})

    prefix = "" if name == "messages" else "invalid request body: "
    assert str(caught.value) == prefix + message
    assert (caught.value.code, caught.value.param) == ("invalid_request", name)


def test_chat_reads_the_envelope() -> None:
    """The model is trimmed, metadata at its limits passes, the body stays as it came."""
    metadata = {f"{n:0128}": "v" * 1024 for n in range(32)}
    body = {"model": " a b ", "stream": True, "messages": MESSAGES, "metadata": metadata}

    request = read_chat(json.dumps(body).encode())

    assert (request.model, request.is_streaming, request.metadata) == ("a b", True, metadata)
    assert request.envelope.body == json.dumps(body).encode()


@pytest.mark.parametrize(("stream", "expected"), [({"stream": False}, False), ({}, False)])
def test_chat_does_not_stream_unless_asked(stream: dict[str, object], *, expected: bool) -> None:
    """False and absent are the same."""
    assert chat(**stream).is_streaming is expected


def test_chat_reads_no_text_before_it_is_asked() -> None:
    """Bytes that are not UTF-8 pass with an untouched body; reading them is the typed error."""
    body = b'{"model":"a","messages":[{"role":"user","content":"\xff"}]}'

    request = read_chat(body)

    assert request.envelope.spliced({"model": b'"b"'}) == body.replace(b'"a"', b'"b"')
    with pytest.raises(InvalidRequest) as caught:
        _ = request.facts
    assert caught.value.code == "invalid_json"


@given(st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "name"]), JSON_VALUES))
def test_chat_reads_any_shape_of_message(message: dict[str, object]) -> None:
    """Whatever stands in a message, facts and count come out, the odd by their bytes."""
    request = chat(messages=[message])

    assert request.token_count >= 4
    assert isinstance(request.evaluation_text, str)


@given(st.lists(JSON_VALUES, max_size=3), JSON_VALUES, JSON_VALUES)
def test_chat_reads_any_content_and_tools(
    content: list[object], tools: object, reserve: object
) -> None:
    """Parts, tools and limits of any type are counted, never refused."""
    message = {"role": "user", "content": content}

    request = chat(messages=[message], tools=tools, max_tokens=reserve)

    assert request.token_count >= 4
    assert request.facts.user_messages == 1


@given(
    CHAT_REQUESTS,
    st.sampled_from(["text", "IMAGE_URL", "\u0131mage"]),
    st.lists(JSON_VALUES, max_size=3),
    JSON_VALUES,
)
@settings(max_examples=300)
def test_surely_shorter_is_never_wrong(
    members: dict[str, object], part_type: str, messages: list[object], limit: object
) -> None:
    """Counting nothing may say "I don't know", but a request it calls short is short."""
    image = {"role": "user", "content": [{"type": part_type}]}
    body = members | {"messages": [*messages, image], "max_completion_tokens": limit}

    for request in (chat(**members), chat(**body)):
        assert not request.is_surely_shorter_than(request.token_count)


def test_surely_shorter_tells_an_ordinary_prompt_from_a_long_band() -> None:
    """The case it is for: a limit is set, and the prompt is far below every band."""
    request = chat(max_tokens=64)

    assert request.is_surely_shorter_than(1000)
    assert not chat(max_tokens=64, model="image").is_surely_shorter_than(1000)
