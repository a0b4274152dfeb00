"""Plugin `system_prompt`."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.plugins.sites import SITE, edited
from tests.strategies import CHAT_REQUESTS, TEXT, json_texts
from vsr.codec.envelope import open_envelope
from vsr.engine.plugins.plugin import Capability
from vsr.engine.plugins.system_prompt import SystemPromptPlugin
from vsr.errors import InvalidRequest
from vsr.resources.plugin import SystemPrompt, SystemPromptMode

INSERT = SystemPromptPlugin(SystemPrompt('Say "hi".\n'), SITE)
REPLACE = SystemPromptPlugin(SystemPrompt('Say "hi".\n', SystemPromptMode.REPLACE), SITE)
OURS = b'"Say \\"hi\\".\\n"'


@pytest.mark.parametrize("plugin", [INSERT, REPLACE])
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"[]", b"[%b]"),
        (b"[ ]", b"[ %b]"),
        (b'[{"role":"user"}]', b'[%b,{"role":"user"}]'),
        (b'[\n {"role":"user","n":1.50} ]', b'[\n %b,{"role":"user","n":1.50} ]'),
        (b'[{"role":"developer","content":"x"}]', b'[%b,{"role":"developer","content":"x"}]'),
        (
            b'[{"role":"user"},{"role":"system","content":"x"}]',
            b'[%b,{"role":"user"},{"role":"system","content":"x"}]',
        ),
        (b'["odd"]', b'[%b,"odd"]'),
        (b'[{"role":7}]', b'[%b,{"role":7}]'),
        (b"[{}]", b"[%b,{}]"),
    ],
)
def test_system_prompt_leads_where_the_client_has_none(
    plugin: SystemPromptPlugin, sent: bytes, expected: bytes
) -> None:
    """Only a first message of role `system` counts; the client's messages keep their bytes."""
    after = edited(plugin, b'{"messages":%b,"x":1}' % sent)

    message = b'{"role":"system","content":%b}' % OURS
    assert after == b'{"messages":%b,"x":1}' % (expected % message)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'"Be brief."', b'"Say \\"hi\\".\\n\\n\\nBe brief."'),
        (b'"\\u00e9 \xc3\xa9 \\/"', b'"Say \\"hi\\".\\n\\n\\n\\u00e9 \xc3\xa9 \\/"'),
        (
            b'[{"type":"text","text":"a"},{"text":"b"},{"type":"input_text","text":"c"}]',
            b'"Say \\"hi\\".\\n\\n\\na\\nb\\nc"',
        ),
        (
            b'[{"type":"image_url","text":"x"},{"type":"text"},{"text":7},{"type":7},"z",{"text":"a"}]',
            b'"Say \\"hi\\".\\n\\n\\na"',
        ),
        (b'[{"type":null,"text":"a"}]', b'"Say \\"hi\\".\\n\\n\\na"'),
        (b'""', OURS),
        (b"[]", OURS),
        (b"null", OURS),
        (b"7", OURS),
    ],
)
def test_inserted_prompt_stands_before_the_clients_text(content: bytes, expected: bytes) -> None:
    """A blank line parts them; a text keeps its bytes, parts are joined by line breaks."""
    body = b'{"messages":[ {"role" : "system","content":%b, "name":"n"},{"a":1.0}]}'

    after = edited(INSERT, body % content)

    assert after == body % expected


def test_replacing_prompt_drops_the_clients_text() -> None:
    """The message's other members stay."""
    body = b'{"messages":[{"name":"n","content":%b,"role":"system"}, {"a":1.0}]}'

    after = edited(REPLACE, body % b'["x"]')

    assert after == body % OURS


@pytest.mark.parametrize("plugin", [INSERT, REPLACE])
def test_system_message_without_content_gets_one(plugin: SystemPromptPlugin) -> None:
    """The client's message is the one that carries the prompt."""
    after = edited(plugin, b'{"messages":[{"role":"system"}]}')

    assert after == b'{"messages":[{"role":"system","content":%b}]}' % OURS


@pytest.mark.parametrize("body", [b"{}", b'{"messages":null}', b'{"messages":{"role":"system"}}'])
def test_system_prompt_leaves_a_body_without_messages(body: bytes) -> None:
    """There is nothing to put it into."""
    assert edited(INSERT, body) == body


def test_system_prompt_refuses_an_ambiguous_message() -> None:
    """Two readers could disagree on which content counts."""
    with pytest.raises(InvalidRequest):
        edited(INSERT, b'{"messages":[{"role":"system","content":"a","content":"b"}]}')


def test_system_prompt_without_text_does_nothing() -> None:
    """Then there is no edit at all."""
    plugin = SystemPromptPlugin(SystemPrompt(""), SITE)

    assert plugin.contribution.body is None
    assert plugin.capability is Capability.REQUEST_SAFE


@given(
    data=st.data(),
    request=CHAT_REQUESTS,
    prompt=TEXT.filter(bool),
    mode=st.sampled_from(SystemPromptMode),
)
def test_system_prompt_keeps_all_other_bytes(
    data: st.DataObject, request: dict[str, object], prompt: str, mode: SystemPromptMode
) -> None:
    """Members, and all messages but the first, are the client's; the text is there."""
    body = data.draw(json_texts(request)).encode()
    plugin = SystemPromptPlugin(SystemPrompt(prompt, mode), SITE)

    after = edited(plugin, body)

    before, envelope = open_envelope(body), open_envelope(after)
    assert list(envelope.members) == list(before.members)
    others = before.members.keys() - {"messages"}
    assert {n: envelope.raw(n) for n in others} == {n: before.raw(n) for n in others}
    sent, messages = json.loads(body)["messages"], json.loads(after)["messages"]
    has_system = bool(sent) and sent[0]["role"] == "system"
    assert messages[1:] == sent[has_system:]
    assert messages[0]["role"] == "system"
    assert messages[0]["content"].startswith(prompt)
    if mode is SystemPromptMode.REPLACE or not has_system:
        assert messages[0]["content"] == prompt
