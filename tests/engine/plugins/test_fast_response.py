"""Plugin `fast_response`."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.engine.plugins.matchers import matches
from tests.engine.plugins.sites import SITE
from tests.reference_dir import reference_dir
from tests.strategies import TEXT
from vsr.codec.edits import Draft
from vsr.codec.envelope import open_envelope
from vsr.engine.plugins.fast_response import FastResponsePlugin
from vsr.engine.plugins.plugin import Capability
from vsr.resources.plugin import FastResponse
from vsr.routing.effect import ImmediateResponse, render_immediate

UNIX_S = 1_700_000_000
MESSAGES = TEXT.map(lambda text: text + "x") | st.text("a \n\té表", min_size=1).filter(str.strip)


def answered(message: str, body: bytes) -> ImmediateResponse:
    """Return what the plugin answers to a request."""
    answer = FastResponsePlugin(FastResponse(message), SITE).contribution.answer
    assert answer is not None
    return answer(Draft(open_envelope(body)), UNIX_S)


def events(response: ImmediateResponse) -> list[Any]:
    """Return the data of the events, parsed but for the end marker."""
    texts = response.body.decode().split("\n\n")
    assert texts.pop() == ""
    data = [text.removeprefix("data: ") for text in texts]
    return [text if text == "[DONE]" else json.loads(text) for text in data]


@given(MESSAGES)
def test_buffered_answer_is_a_chat_completion(message: str) -> None:
    """An OpenAI client reads it; it has the message and no usage."""
    response = answered(message, b'{"model":"auto","stream":false}')

    completion = ChatCompletion.model_validate_json(response.body, strict=True)
    assert completion.choices[0].message.content == message
    assert completion.choices[0].finish_reason == "stop"
    assert (completion.id, completion.created) == (f"chatcmpl-fast-{UNIX_S}", UNIX_S)
    assert (completion.model, completion.object) == ("router", "chat.completion")
    assert completion.usage is not None
    assert completion.usage.total_tokens == 0


@given(MESSAGES)
def test_streamed_answer_adds_up_to_the_message(message: str) -> None:
    """Word by word and with its own white space; one id, one role, one end."""
    *chunks, done = events(answered(message, b'{"stream":true}'))

    parsed = [ChatCompletionChunk.model_validate(chunk) for chunk in chunks]
    deltas = [chunk.choices[0].delta for chunk in parsed]
    assert "".join(delta.content or "" for delta in deltas) == message
    assert [delta.role for delta in deltas] == ["assistant"] + [None] * (len(deltas) - 1)
    reasons = [chunk.choices[0].finish_reason for chunk in parsed]
    assert reasons == [None] * (len(parsed) - 1) + ["stop"]
    assert {chunk.id for chunk in parsed} == {f"chatcmpl-fast-{UNIX_S}"}
    assert not any("usage" in chunk for chunk in chunks)
    assert done == "[DONE]"


@pytest.mark.parametrize(
    ("options", "is_asked"),
    [
        (b'{"include_usage":true}', True),
        (b'{"include_usage":false}', False),
        (b'{"include_usage":"yes"}', False),
        (b"{}", False),
        (b"null", False),
    ],
)
def test_stream_ends_with_usage_if_asked(options: bytes, *, is_asked: bool) -> None:
    """The last chunk has no choices then, as OpenAI's has; otherwise no chunk has usage."""
    *chunks, _ = events(answered("a b", b'{"stream":true,"stream_options":%b}' % options))

    assert [chunk["choices"] for chunk in chunks].count([]) == is_asked
    assert ("usage" in chunks[-1]) is is_asked
    if is_asked:
        assert ChatCompletionChunk.model_validate(chunks[-1]).usage is not None


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"{}", b"application/json"), (b'{"stream":true}', b"text/event-stream")],
)
def test_answer_says_where_it_comes_from(body: bytes, content_type: bytes) -> None:
    """All headers, in the reference's order."""
    response = answered("No.", body)

    status, lines = render_immediate(response)

    assert status == 200
    assert lines == [
        (b"content-type", content_type),
        (b"x-vsr-selected-decision", b"guard"),
        (b"x-vsr-fast-response", b"true"),
        (b"x-vsr-schema-version", b"2"),
        (b"x-vsr-response-path", b"fast_response"),
        (b"x-vsr-config-version", b"7"),
        (b"x-vsr-selected-recipe", b"default"),
        (b"content-length", b"%d" % len(response.body)),
    ]


def test_fast_response_needs_nothing_of_the_answer() -> None:
    """There is no backend's answer to wait for."""
    assert FastResponsePlugin.capability is Capability.REQUEST_SAFE


@pytest.mark.parametrize("name", ["buffered", "streamed"])
def test_answer_comes_out_as_in_the_reference(name: str) -> None:
    """The phase fixture for chat clients."""
    file = reference_dir() / "phase-fixtures" / "12-fast-response-chat.yaml"
    fixture = yaml.safe_load(file.read_text())
    [plugin] = fixture["config"]["routing"]["decisions"][0]["plugins"]
    [step] = [case["steps"][1] for case in fixture["cases"] if case["name"] == name]
    expected = step["expect"]

    body = json.dumps(step["send"]["request_body"]["json"]).encode()
    response = answered(plugin["configuration"]["message"], body)

    status, lines = render_immediate(response)
    headers = {key.decode(): value.decode() for key, value in lines}
    assert status == expected["status"]
    assert matches(headers, expected["headers"])
    assert not headers.keys() & set(expected.get("headers_absent", ()))
    if "json" in expected["body"]:
        assert matches(json.loads(response.body), expected["body"]["json"])
    else:
        assert matches([{"data": it} for it in events(response)], expected["body"]["sse"])
