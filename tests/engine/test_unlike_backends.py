"""Backends of one model that are called differently: each gets its own form, and only that."""

import json
from collections.abc import Mapping

import pytest
import trio
import trio.testing

from tests.demo.raw_client import CHAT, AnswerEnd, chat_body
from tests.engine.unlike import BUSY, CLIENT, NAMES, Unlike, start
from tests.engine.wired import MESSAGES
from tests.fakes.router import clusters_of
from tests.upstream.raw_backend import Answer, reply
from vsr.headers import HeaderLine
from vsr.http.h1_client import encode_request
from vsr.network.memory import Fault

RETRIES = "{retry_count: 3, retry_on: 'reset,5xx,connect-failure'}"
FAILURES: Mapping[str, Answer | bytes] = {
    "status": reply(503, BUSY),
    "nonsense": b"nonsense\r\n\r\n",
    "silence": b"",
    "nobody": b"",
}
CLOSED = "{providers: [{type: header-injection}, {type: static-config}]}"
FALLBACK = """{fallback: {enabled: true, retryable_status_codes: [429, 503]},
    decisions: [{name: all, modelRefs: [REFS]}]}"""


async def held(each: Unlike) -> list[int]:
    """Return leases, connections in use and slots."""
    leases, connections = await each.router.held()
    states = clusters_of(each.router.generation).states.values()
    return [leases, connections, *(it.gate.breaker.active + it.slots.taken for it in states)]


async def pass_one_over(each: Unlike) -> None:
    """Let the next request begin with another backend; chance has begun with one."""
    kept = {name: backend.answer for name, backend in each.backends.items()}
    for backend in each.backends.values():
        backend.answer = reply(404, BUSY)
    await each.ask()
    each.forget()
    for name, answer in kept.items():
        each.backends[name].answer = answer


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("target", [CHAT, MESSAGES])
async def test_each_backend_gets_its_own_form(
    target: bytes,
    stream: bool,  # noqa: FBT001  # a case
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """In turn; the client reads its own protocol from all of them, whatever they speak."""
    each = await start(nursery)

    answers = [await each.ask(*CLIENT, target=target, stream=stream) for _ in NAMES]

    assert each.asked == dict.fromkeys(NAMES, 1)
    for name in NAMES:
        each.check_own_form(name)
    each.check_canaries()
    for got in answers:
        assert (got.status, got.end) == (200, AnswerEnd.WHOLE)
        assert got.line(b"x-vsr-selected-model") in {b"", b"mix"}
        assert (b"chat.completion" in got.body) == (target == CHAT)
        assert b"Hello" in got.body
        assert b"canary" not in got.raw
    lines = await each.router.log()
    assert {line["model"] for line in lines} == {"mix"}
    assert {str(line["upstream_host"]).partition(".")[0] for line in lines} == set(NAMES)
    spoken = [got.line(b"x-vsr-upstream-protocol") for got in answers]
    foreign = 1 if target == CHAT else 3
    assert len([it for it in spoken if it]) == foreign
    # Usage comes from the protocol of the backend that was called.
    assert all((it["prompt_tokens"], it["completion_tokens"]) == (7, 3) for it in lines)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("last", NAMES)
async def test_retry_is_made_in_the_form_of_the_backend_that_it_goes_to(
    last: str,
    failure: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Through all the others to the last one, whatever either speaks."""
    each = await start(
        nursery, [*(name for name in NAMES if name != last), last], reliability=RETRIES
    )
    for name in NAMES:
        if name != last:
            each.backends[name].answer = FAILURES[failure]
            each.backends[name].closes = failure == "silence"
            if failure == "nobody":
                each.router.network.forget(each.backends[name].port)

    called: set[str] = set()
    for _ in NAMES:  # each of them is the first to be called once
        got = await each.ask(*CLIENT)

        assert (got.status, each.asked[last]) == (200, 1)
        assert b"chat.completion" in got.body
        for name, times in each.asked.items():
            if times:
                each.check_own_form(name)
                called.add(name)
        each.check_canaries()
        each.forget()
    assert called == ({last} if failure == "nobody" else set(NAMES))
    lines = await each.router.log()
    assert {str(line["upstream_host"]).partition(".")[0] for line in lines} == {last}
    assert max(line["attempts"] for line in lines) == 4
    assert await held(each) == [0, 0, 0]


@pytest.mark.parametrize("target", [CHAT, MESSAGES])
@pytest.mark.parametrize("name", NAMES)
async def test_failure_of_a_backend_is_read_in_its_protocol(
    name: str, target: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The last of two tries; the client is told in its own."""
    first = next(it for it in NAMES if it != name)
    each = await start(nursery, [first, name], reliability="{retry_count: 1, retry_on: 5xx}")
    each.fail(first, name)

    got = await each.ask(*CLIENT, target=target)
    if each.order == [name, first]:
        await pass_one_over(each)
        got = await each.ask(*CLIENT, target=target)

    assert each.order == [first, name]
    speaks = "anthropic" if name == "claude" else "openai"
    client = "anthropic" if target == MESSAGES else "openai"
    told = b"" if speaks == client else speaks.encode()
    assert (got.status, got.line(b"x-vsr-upstream-protocol")) == (503, told)
    assert got.json()["error"]
    each.check_canaries()


@pytest.mark.parametrize("alone", NAMES)
async def test_fallback_from_and_to_unlike_backends_carries_nothing_along(
    alone: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """To another model that has one of them, and from it to this one."""
    mixed = [name for name in NAMES if name != alone]
    for refs in (f"{{model: mix}}, {{model: {alone}}}", f"{{model: {alone}}}, {{model: mix}}"):
        async with trio.open_nursery() as tasks:
            each = await start(
                tasks,
                mixed,
                reliability="{retry_count: 2, retry_on: 5xx}",
                routing=FALLBACK.replace("REFS", refs),
                more=[alone],
            )
            is_first = refs.startswith("{model: mix")
            each.fail(*(mixed if is_first else [alone]))

            path = f"mix,{alone}" if is_first else f"{alone},mix"
            called: set[str] = set()
            for _ in mixed:  # each of them is the first to be called once
                got = await each.ask(*CLIENT, model="auto")

                assert (got.status, got.line(b"x-vsr-fallback-path")) == (200, path.encode())
                assert len(each.order) == (4 if is_first else 2)
                for name in each.order:
                    each.check_own_form(name)
                each.check_canaries()
                called.update(each.order)
                assert b"chat.completion" in got.body
                assert b"canary" not in got.raw
                each.forget()
            assert called == set(NAMES)
            tasks.cancel_scope.cancel()


async def test_held_failure_is_read_as_that_of_the_backend_it_came_from(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A candidate was called in between, and spoke something else."""
    refs = FALLBACK.replace("REFS", "{model: mix}, {model: local}")
    retries = "{retry_count: 1, retry_on: 5xx}"
    each = await start(
        nursery, ["azure", "claude"], routing=refs, more=["local"], reliability=retries
    )
    each.fail("azure", "local", "claude")

    found = []
    for _ in range(2):
        got = await each.ask(*CLIENT, model="auto")
        found.append((list(each.order), got.status, got.line(b"x-vsr-upstream-protocol")))
        await pass_one_over(each)

    assert sorted(found) == [
        (["azure", "claude", "local"], 503, b"anthropic"),
        (["claude", "azure", "local"], 503, b""),
    ]


async def test_users_key_goes_to_its_provider_alone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Through retries as well; the others get what the document says."""
    each = await start(nursery, reliability=RETRIES)
    each.fail(*NAMES)

    await each.ask((b"x-user-azure-openai-key", b"azure-canary-user"), *CLIENT)

    assert each.asked == dict.fromkeys(NAMES, 1)
    assert each.credentials("azure") == {
        b"api-key": b"azure-canary-user",
        b"x-token": b"client-canary",
    }
    each.check_canaries()


async def test_backend_without_a_key_is_passed_over(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Where a key is needed and the user has one for another provider only."""
    authz = "{providers: [{type: header-injection}]}"
    each = await start(nursery, authz=authz)
    key: HeaderLine = (b"x-user-azure-openai-key", b"azure-canary-user")

    answers = [await each.ask(key, *CLIENT) for _ in range(8)]
    refused = await each.ask(*CLIENT)

    assert [got.status for got in answers] == [200] * 8
    assert each.asked == dict.fromkeys(NAMES, 0) | {"azure": 8}
    assert refused.status == 401
    assert await held(each) == [0, 0, 0]


async def test_backend_that_cannot_be_asked_this_is_passed_over(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A request that Anthropic's protocol can't say, also where that backend is the first."""
    each = await start(nursery, ["claude", "hosted", "azure"])
    result = [{"role": "user", "content": "hi"}, {"role": "tool", "content": "of no call"}]

    answers = [await each.ask(*CLIENT, messages=result) for _ in range(9)]

    assert [got.status for got in answers] == [200] * 9
    assert each.asked["claude"] == 0
    assert min(each.asked["hosted"], each.asked["azure"]) >= 3


async def test_request_that_nobody_can_be_asked_is_refused(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With the reason of the first."""
    each = await start(nursery, authz="{providers: [{type: header-injection}]}")

    got = await each.ask(*CLIENT, target=MESSAGES)

    assert got.status == 401
    assert not any(each.asked.values())


async def test_passed_on_requests_get_path_and_headers_of_the_backend_but_no_key(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """On a path that nobody serves; the client's credentials reach no backend that has a key."""
    each = await start(nursery)

    for _ in NAMES:
        await each.router.ask(b"{}", target=b"/v1/embeddings", lines=CLIENT)

    assert {name: each.head(name).target for name in NAMES} == {
        "local": b"/v1/embeddings",
        "hosted": b"/hosted-canary/v1/embeddings",
        "azure": b"/azure-canary/embeddings",
        "claude": b"/v1/embeddings",
    }
    assert each.credentials("local") == dict(CLIENT)
    assert each.credentials("hosted") == {}
    for name in ("azure", "claude"):
        assert each.credentials(name) == {b"x-token": b"client-canary"}
    each.check_canaries()


async def test_reasoning_is_switched_as_each_provider_wants_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """An argument of the template at one, a level of the request's own at another."""
    routing = """{decisions: [{name: all, modelRefs: [
        {model: mix, use_reasoning: true, reasoning_effort: high}]}]}"""
    reasoning = """, reasoning: {type: reasoning_effort, parameter: reasoning_effort,
        levels: [low, high], default: low}"""
    each = await start(nursery, ["local", "azure"], routing=routing, model=reasoning)

    for _ in range(2):
        await each.ask(*CLIENT, model="auto")

    assert each.body("local")["chat_template_kwargs"] == {"reasoning_effort": "high"}
    assert "reasoning_effort" not in each.body("local")
    assert each.body("azure")["reasoning_effort"] == "high"
    assert "chat_template_kwargs" not in each.body("azure")


@pytest.mark.parametrize("moment", ["connect", "wait", "back-off"])
async def test_client_that_leaves_leaves_nothing_behind(
    moment: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Wherever the second attempt is, at a backend of another kind than the first."""
    retries = "{retry_count: 1, retry_on: 5xx, retry_after_max: 99s}"
    each = await start(nursery, ["hosted", "claude"], reliability=retries)
    for backend in each.backends.values():
        backend.closes = True  # so that the next request connects
    while each.order[-1:] != ["claude"]:
        await each.ask()  # so that it begins with the other one
    each.forget()
    each.fail("hosted")
    if moment == "connect":
        each.router.network.faults["claude.test"] = Fault.SILENT
    elif moment == "wait":
        each.backends["claude"].answer = b""
        each.backends["claude"].closes = False
    else:
        each.backends["hosted"].answer = reply(503, BUSY, (b"retry-after", b"60"))
    body = chat_body(model="mix")
    connection = await each.router.connect()

    await connection.send(encode_request(b"POST", CHAT, b"r", [], len(body)) + body)
    await trio.sleep(1)
    assert sum(await held(each)) > 0
    connection.close()
    await trio.sleep(0.05)

    assert await held(each) == [0, 0, 0]
    line = (await each.router.log())[-1]
    assert (line["cause"], line["attempts"]) == ("client_gone", 1 if moment == "back-off" else 2)
    assert each.order == ["hosted", "claude"][: 2 if moment == "wait" else 1]


async def test_ejected_backends_work_is_done_by_another_kind(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One that keeps failing leaves rotation like any endpoint."""
    ejection = "{consecutive_5xx: 2, max_ejection_percent: 50}"
    each = await start(nursery, ["hosted", "claude"], reliability=ejection)
    each.fail("hosted")

    statuses = [(await each.ask(*CLIENT)).status for _ in range(12)]

    assert statuses.count(503) == 2
    assert each.asked == {"hosted": 2, "claude": 10}


async def test_body_differs_in_nothing_but_the_model_name(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Every other byte is the client's, at each backend of its protocol."""
    each = await start(nursery, ["local", "hosted", "azure"])
    body = b'{ "messages":[{"role":"user","content":"h\\u00e9"}] ,"model" : "mix","zzz":1.50 }'

    for _ in range(3):
        await each.router.ask(body)

    for name, backend in each.backends.items():
        [(_, sent)] = backend.seen
        assert sent == body.replace(b'"mix"', f'"{name}-canary-model"'.encode())
        assert json.loads(sent)["zzz"] == 1.5
