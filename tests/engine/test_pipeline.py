"""What routing does to a request on its way, and to its answer."""

import json

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.demo.raw_client import Got, chat_body
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.codec.chat import read_chat
from vsr.headers import HeaderLine
from vsr.network.memory import MemoryNetwork

ROUTING = """{
    signals: {keywords: [{name: code, operator: OR, keywords: [python]},
                         {name: snake, operator: OR, keywords: [python]}],
              context: [{name: short, max_tokens: 100}]},
    decisions: [{name: code, modelRefs: [{model: beta}],
      rules: {operator: AND, conditions: [{type: keyword, name: code}]}}]}"""
ID = (b"x-request-id", b"id-1")


async def start(nursery: trio.Nursery) -> tuple[RunningRouter, RawBackend]:
    """Start a Router with two models on one backend."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    document = document_of(
        model_of(backend.port, "alpha", provider_model_id="alpha-real"),
        model_of(
            backend.port,
            "beta",
            base_url=f"'http://beta.test:{backend.port}/prefix/v1'",
            provider="openai",
            api_key="beta-key",
            extra_headers="{X-B: '2', X-A: '1'}",
        ),
        routing=ROUTING,
    )
    return await start_router(nursery, network, document), backend


async def ask_router(
    nursery: trio.Nursery, body: bytes, *lines: HeaderLine
) -> tuple[Got, list[HeaderLine], bytes, bytes]:
    """Return the answer, and lines, target and body of what the backend saw."""
    router, backend = await start(nursery)
    got = await router.ask(body, lines=[ID, *lines])
    [(head, sent)] = backend.seen
    return got, head.lines, head.target, sent


async def test_backend_gets_the_records_headers_in_order(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The client's sorted, ours behind them, framing last; of the removed ones nothing is left."""
    body = chat_body(model="alpha")

    _, lines, target, sent = await ask_router(
        nursery,
        body,
        (b"z-last", b"z"),
        (b"authorization", b"Bearer own"),
        (b"accept-encoding", b"gzip"),
        (b"x-user-openai-key", b"k1"),
        (b"x-vsr-looper-request", b"true"),
        (b"x-repeated", b"one"),
        (b"a-first", b"a"),
        (b"x-repeated", b"two"),
    )

    assert target == b"/v1/chat/completions"
    assert [line for line in lines if line[0] != b"host"] == [
        (b"a-first", b"a"),
        (b"authorization", b"Bearer own"),
        (b"x-repeated", b"one"),
        (b"x-repeated", b"two"),
        ID,
        (b"z-last", b"z"),
        (b"x-forwarded-proto", b"http"),
        (b"accept-encoding", b"identity"),
        (b"x-selected-model", b"alpha"),
        (b"content-length", b"%d" % len(sent)),
    ]


async def test_provider_headers_credential_and_path_are_set(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """They replace what the client sent under the same names."""
    _, lines, target, _ = await ask_router(
        nursery,
        chat_body(model="beta"),
        (b"authorization", b"Bearer client"),
        (b"x-a", b"client"),
        (b"x-selected-model", b"alpha"),
    )

    fields = [line for line in lines if line[0] not in {b"host", b"content-length"}]
    assert target == b"/prefix/v1/chat/completions"
    assert sorted(fields) == [
        (b"accept-encoding", b"identity"),
        (b"authorization", b"Bearer beta-key"),
        (b"x-a", b"1"),
        (b"x-b", b"2"),
        (b"x-forwarded-proto", b"http"),
        ID,
        (b"x-selected-model", b"beta"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"alpha","messages":[]}',
        b' \n{ "stream" : false ,\t"messages" : [ ] , "model" : "alpha" , "seed" : 1e0 }\r\n ',
        b'{"messages":[{"role":"user","content":"\xf0\x9f\x98\x80 \\u00e9 \\/"}],"model":"alpha"}',
        b'{"mod\\u0065l":"alpha","messages":[{"role":"user","content":"model: alpha"}]}',
        b'{"metadata":{"model":"alpha"},"model":"alpha","messages":[],"big":123456789012345678901}',
        b'{"x":"\\"model\\":\\"alpha\\"","messages":[{"role":"user","content":"a"}],"model":"alpha"}',
    ],
)
async def test_splice_keeps_every_other_byte(
    body: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Prompt caches and signatures depend on the client's own bytes."""
    value = _top_level_model(body)

    _, lines, _, sent = await ask_router(nursery, body)

    assert sent == body[:value] + b'"alpha-real"' + body[value + len(b'"alpha"') :]
    assert dict(lines)[b"content-length"] == b"%d" % len(sent)


def _top_level_model(body: bytes) -> int:
    """Return where the value `"alpha"` of the top-level member stands: replacing it changes it."""
    at = -1
    while (at := body.find(b'"alpha"', at + 1)) >= 0:
        changed = body[:at] + b'"other"' + body[at + 7 :]
        if read_chat(changed).model == "other" and json.loads(changed)["model"] == "other":
            return at
    raise AssertionError(body)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    members=st.dictionaries(
        st.text(max_size=6).filter(lambda name: name not in {"model", "messages", "stream"}),
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=8)
        | st.lists(st.text(max_size=3)),
        max_size=4,
    ),
    at=st.integers(0, 4),
)
def test_splice_keeps_the_members_order(members: dict[str, object], at: int) -> None:
    """Any members, the model anywhere among them: decoded, only the model differs."""
    ordered = list(members.items())
    ordered[at:at] = [("model", "alpha")]
    ordered.insert(0, ("messages", [{"role": "user", "content": "hi"}]))
    chat = read_chat(json.dumps(dict(ordered), ensure_ascii=False).encode())

    spliced = chat.envelope.spliced({"model": b'"alpha-real"'})

    wanted = [(name, "alpha-real" if name == "model" else value) for name, value in ordered]
    assert list(json.loads(spliced).items()) == wanted


async def test_body_that_already_names_the_model_passes_untouched(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing is spliced where alias and provider model are one."""
    body = b' {"messages":[{"role":"user","content":"hi"}] , "model" : "beta"}'

    _, lines, _, sent = await ask_router(nursery, body)

    assert sent == body
    assert [value for name, value in lines if name == b"content-length"] == [b"%d" % len(body)]


@pytest.mark.parametrize(
    ("text", "model", "shown"),
    [
        (
            "python please",
            "auto",
            {
                b"x-vsr-client-protocol": b"openai",
                b"x-vsr-upstream-protocol": b"openai",
                b"x-vsr-selected-reasoning": b"off",
                b"x-vsr-injected-system-prompt": b"false",
                b"x-vsr-matched-keywords": b"code,snake",
                b"x-vsr-context-token-count": b"*",
            },
        ),
        (
            "python please",
            "beta",
            {
                b"x-vsr-client-protocol": b"openai",
                b"x-vsr-upstream-protocol": b"openai",
                b"x-vsr-selected-reasoning": b"off",
                b"x-vsr-injected-system-prompt": b"false",
            },
        ),
    ],
)
async def test_debug_headers_tell_what_matched(
    text: str,
    model: str,
    shown: dict[bytes, bytes],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Only with `x-vsr-debug: true`; the usual ones stay in their order."""
    body = chat_body(text, model=model)

    router, _ = await start(nursery)
    plain = await router.ask(body)
    debugged = await router.ask(body, lines=[(b"x-vsr-debug", b" TRUE ")])

    assert plain.head is not None
    assert debugged.head is not None
    usual = [name for name, _ in plain.head.lines]
    more = [line for line in debugged.head.lines if line[0] not in usual]
    assert [name for name, _ in debugged.head.lines if name not in shown] == usual
    assert [name for name, _ in more] == list(shown)
    for name, value in more:
        assert value == shown[name] or (shown[name] == b"*" and int(value) > 0)


@pytest.mark.parametrize(
    ("selected", "path"),
    [(b"beta", b"beta"), (b"alpha", b"alpha"), (b"nobody", b"alpha"), (b"", b"alpha")],
)
async def test_client_route_key_counts_only_where_routing_changed_nothing(
    selected: bytes, path: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A path that is nobody's goes where `x-selected-model` says, unknown ones to the default."""
    router, backend = await start(nursery)

    await router.ask(b"{}", target=b"/v1/embeddings", lines=[(b"x-selected-model", selected)])
    await router.ask(chat_body(model="alpha"), lines=[(b"x-selected-model", b"beta")])

    [other, chat] = [head for head, _ in backend.seen]
    assert other.authority.startswith(b"beta.test" if path == b"beta" else b"127.0.0.1")
    assert other.target == b"/v1/embeddings"
    assert chat.authority.startswith(b"127.0.0.1")
    assert chat.fields[b"x-selected-model"] == b"alpha"
