"""What is left of a failed call: no secret in the next one, nothing held, but a memory of it."""

import json
from collections.abc import Mapping

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import CHAT, Got, chat_body
from tests.engine.stepped_backend import EVENT_STREAM, LAST_CHUNK, Act, Steps, chunk
from tests.engine.test_fallback import BUSY, ERROR, FINE, HUNG, NAMES, start
from tests.engine.wired import CHAT_PIECES, COMPLETION, MESSAGE, MESSAGES, whole
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from tests.upstream.raw_backend import Answer, RawBackend, reply
from vsr.headers import HeaderLine
from vsr.http.framing import RequestHead
from vsr.http.h1_client import encode_request
from vsr.network.memory import Fault, MemoryNetwork

CANARY = b"canary"
"""In everything of the first model's provider, and in nothing else."""
USER_KEY = (b"x-user-openai-key", b"canary-of-the-user")
OTHER_KEY = (b"x-user-anthropic-key", b"other-of-the-user")
CLIENT: list[HeaderLine] = [
    (b"authorization", b"Bearer of-the-client"),
    (b"api-key", b"of-the-client"),
    (b"x-api-key", b"of-the-client"),
]
CREDENTIALS = {name for name, _ in CLIENT}
OF = {
    "claude": {b"x-api-key": b"own-claude"},
    "azure": {b"api-key": b"own-azure"},
    "local": dict(CLIENT),
}
"""What of credentials each candidate gets if the user has no key for it."""
FAILURES: Mapping[str, Answer | bytes] = {
    "status": reply(503, ERROR, (b"x-of-alpha", b"canary-of-the-backend")),
    "nonsense": b"canary nonsense\r\n\r\n",
    "silence": b"",
    "nobody": b"",
}


@attrs.define(eq=False)
class Bench:
    """A Router whose decision has a model of OpenAI's, then one of another provider."""

    router: RunningRouter
    backends: dict[str, RawBackend]

    async def ask(self, *lines: HeaderLine, target: bytes = CHAT) -> Got:
        """Ask the decision."""
        body = chat_body(model="auto")
        if target == MESSAGES:
            body = body.replace(b"{", b'{"max_tokens": 9, ', 1)
        return await self.router.ask(body, target=target, lines=lines)

    def head(self, name: str) -> RequestHead:
        """Return the head of the one request that a model's backend has seen."""
        [(head, _)] = self.backends[name].seen
        return head

    def seen(self, name: str) -> bytes:
        """Return every byte of the one request that a model's backend has seen."""
        [(head, body)] = self.backends[name].seen
        return b"%b %b\n%b\n%b" % (head.target, head.authority, repr(head.lines).encode(), body)

    def credentials(self, name: str) -> dict[bytes, bytes]:
        """Return those that a model's backend was sent."""
        lines = [line for line in self.head(name).lines if line[0] in CREDENTIALS]
        assert len(dict(lines)) == len(lines)
        return dict(lines)


async def bench(nursery: trio.Nursery, *candidates: str, authz: str = "{}") -> Bench:
    """Start one; all secrets of `alpha`'s provider are canaries."""
    network = MemoryNetwork()
    backends = {
        name: await RawBackend(network, reply(200, body)).start(nursery)
        for name, body in [
            ("alpha", COMPLETION),
            ("claude", MESSAGE),
            ("azure", COMPLETION),
            ("local", COMPLETION),
            ("bare", COMPLETION),
        ]
    }
    ports = {name: backend.port for name, backend in backends.items()}
    models = [
        model_of(
            ports["alpha"],
            "alpha",
            provider="openai",
            base_url=f"'http://canary.test:{ports['alpha']}/canary/v1'",
            api_key="canary-key",
            extra_headers="{x-organisation: canary-organisation, x-canary: '1'}",
            provider_model_id="canary-model",
            reliability="{total_timeout: 5s}",
        ),
        model_of(
            ports["claude"],
            "claude",
            provider="anthropic",
            api_key="own-claude",
            extra_headers="{x-own: claude}",
            provider_model_id="claude-real",
        ),
        model_of(ports["azure"], "azure", provider="azure-openai", api_key="own-azure"),
        model_of(ports["local"], "local"),
        model_of(ports["bare"], "bare", provider="openai"),
    ]
    refs = ", ".join(f"{{model: {name}}}" for name in ("alpha", *candidates))
    document = document_of(
        *models,
        listener="identity: {trust_headers: true}",
        routing=f"{{fallback: {{enabled: true}}, decisions: [{{name: all, modelRefs: [{refs}]}}]}}",
    )
    document += f"\nglobal: {{services: {{authz: {authz}}}}}"
    return Bench(await start_router(nursery, network, document), backends)


def break_first(each: Bench, failure: str) -> None:
    """Let the first model fail so."""
    each.backends["alpha"].answer = FAILURES[failure]
    if failure == "nobody":
        each.router.network.forget(each.backends["alpha"].port)


@pytest.mark.parametrize("target", [CHAT, MESSAGES])
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("candidate", OF)
async def test_candidate_gets_nothing_of_the_first_model_s_provider(
    candidate: str,
    failure: str,
    target: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """No key, the user's included, no header, host, path or model name; its own it does get."""
    each = await bench(nursery, candidate)
    break_first(each, failure)

    got = await each.ask(USER_KEY, *CLIENT, target=target)

    if failure != "nobody":  # else the test would look for what is nowhere
        assert each.seen("alpha").count(CANARY) >= 6
        assert each.credentials("alpha") == {b"authorization": b"Bearer canary-of-the-user"}
    assert got.status == 200
    assert CANARY not in each.seen(candidate)
    assert b"alpha" not in each.seen(candidate)
    assert each.credentials(candidate) == OF[candidate]
    assert CANARY not in got.raw
    assert CANARY not in await each.router.log_text()


async def test_first_model_gets_nothing_of_a_candidate_s_provider(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A user's key for the candidate waits for it and takes the place of the configured one."""
    each = await bench(nursery, "claude")
    break_first(each, "status")

    got = await each.ask(OTHER_KEY, USER_KEY, *CLIENT)

    assert got.status == 200
    assert each.credentials("claude") == {b"x-api-key": b"other-of-the-user"}
    assert each.credentials("alpha") == {b"authorization": b"Bearer canary-of-the-user"}
    for secret in (b"other-of-the-user", b"own-claude", b"x-own", b"claude-real"):
        assert secret not in each.seen("alpha")
        assert secret not in got.raw.replace(b"claude-real", b"")
    assert each.head("claude").fields[b"x-own"] == b"claude"


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("answer", [reply(503, ERROR), reply(401, ERROR), b"own nonsense\r\n\r\n"])
async def test_secrets_are_in_no_error_and_no_log(
    answer: bytes, failure: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """When nobody has answered either."""
    each = await bench(nursery, "claude")
    break_first(each, failure)
    each.backends["claude"].answer = answer

    got = await each.ask(USER_KEY, OTHER_KEY, *CLIENT)
    shown = got.raw + await each.router.log_text()

    assert got.status in {502, 503, 504}
    assert CANARY not in each.seen("claude")
    secrets = [b"canary-key", b"canary-of-the-user", b"canary-organisation", b"canary-model"]
    for secret in (*secrets, b"own-claude", b"of-the-user", b"of-the-client", b"claude-real"):
        assert secret not in shown


async def test_second_candidate_gets_nothing_of_the_first_one(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Each is made of the client's request anew."""
    each = await bench(nursery, "claude", "local")
    break_first(each, "status")
    each.backends["claude"].answer = reply(503, ERROR)

    got = await each.ask(USER_KEY, OTHER_KEY, *CLIENT)

    fields = each.head("local").fields
    assert got.status == 200
    assert each.credentials("local") == dict(CLIENT)
    assert not {b"x-own", b"anthropic-version", b"x-canary"} & set(fields)
    assert each.head("local").target == CHAT
    assert json.loads(each.backends["local"].seen[0][1]) == json.loads(chat_body(model="local"))


async def test_candidate_for_which_there_is_no_key_is_passed_over(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A closed chain asks for one; it is not called, and counts as no attempt."""
    authz = "{providers: [{type: static-config}]}"
    each = await bench(nursery, "bare", "azure", authz=authz)
    break_first(each, "status")

    got = await each.ask(*CLIENT)

    assert (got.status, each.backends["bare"].seen) == (200, [])
    assert got.line(b"x-vsr-fallback-path") == b"alpha,azure"
    assert got.line(b"x-vsr-fallback-attempts") == b"2"


@attrs.frozen
class Moment:
    """Where a request is when its client leaves, a second after it came."""

    alpha: Steps
    beta: Steps = HUNG
    attempts: int = 2
    gone: tuple[int, int] = (1, 1)
    """Connections that each backend sees closed."""
    at_once: tuple[int, int] = (0, 0)
    """Those among them that are closed before the client leaves."""
    host: str = ""
    """Never lets anybody connect."""
    policy: str = ""
    stream: bool = False


PART: Steps = [BUSY[0][:-9], Act.HANG]
"""A failure whose body is still to come, so that its connection is held open."""
LATER = whole(503, ERROR, (b"retry-after", b"60"))
LOOK = ", triggers: [content_refusal]"
MOMENTS = {
    "first call": Moment(HUNG, attempts=1, gone=(1, 0)),
    "look at the first answer": Moment(
        [FINE[0][:-9], Act.HANG], attempts=1, gone=(1, 0), policy=LOOK
    ),
    "connect": Moment(PART, gone=(1, 0), host="beta.test"),
    "wait": Moment(PART),
    "back-off": Moment(PART, LATER, at_once=(0, 1)),
    "look at an answer": Moment(PART, [FINE[0][:-9], Act.HANG], policy=LOOK),
    "stream": Moment(
        PART, [EVENT_STREAM, chunk(CHAT_PIECES[0]), Act.HANG], at_once=(1, 0), stream=True
    ),
    "whole answer": Moment(PART, [FINE[0][:-9], Act.HANG], at_once=(1, 0)),
}


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
async def test_client_that_leaves_leaves_nothing_behind(
    moment: Moment, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Wherever the chain is: connections, slots and leases are given back within 50 ms."""
    retries = "retry_count: 1, retry_on: 5xx, retry_after_max: 99s"
    models = await start(nursery, f"enabled: true{moment.policy}", beta=retries)
    models.play(moment.alpha, moment.beta)
    if moment.host:
        models.router.network.faults[moment.host] = Fault.SILENT
    body = chat_body(model="auto", stream=moment.stream)
    connection = await models.router.connect()
    left_at = trio.current_time() + 1

    await connection.send(encode_request(b"POST", CHAT, b"r", [], len(body)) + body)
    await trio.sleep(1)
    gone = [models.backends[name].gone_at for name in ("alpha", "beta")]
    assert tuple(map(len, gone)) == moment.at_once
    held = await models.held()
    assert (held[0], sum(held[2:]) > 0) == (1, True)
    connection.close()
    await trio.sleep(0.05)

    assert await models.held() == [0] * 5
    assert tuple(map(len, gone)) == moment.gone
    assert all(at <= left_at + 0.05 for each in gone for at in each)
    [line] = await models.router.log()
    assert (line["outcome"], line["cause"]) == ("cancelled", "client_gone")
    assert (line["response_flags"], line["attempts"]) == ("DC", moment.attempts)


STREAMED = [EVENT_STREAM, *map(chunk, CHAT_PIECES), LAST_CHUNK]
ENDS: Mapping[str, tuple[Steps, Steps]] = {
    "answer": (PART, FINE),
    "stream": (PART, STREAMED),
    "broken stream": (PART, [*STREAMED[:2], Act.RESET]),
    "failure": (BUSY, BUSY),
    "local reply": (HUNG, [Act.RESET]),
}


@pytest.mark.parametrize("end", ENDS)
async def test_end_of_a_chain_gives_everything_back(
    end: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The failure that was held, too."""
    models = await start(nursery, models=["alpha", "beta"], alpha="total_timeout: 5s")
    models.play(*ENDS[end])

    await models.ask(stream="stream" in end)

    assert await models.held() == [0] * 4
    assert len(models.backends["alpha"].gone_at) == int(end != "failure")
    assert len(models.called) == 2


async def test_candidate_that_keeps_failing_is_passed_over_for_a_while(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Until the cooldown has passed; then one request at a time finds out, and success heals."""
    breaker = "circuit_breaker: {consecutive_failures: 2, cooldown_period: 20s}"
    models = await start(nursery, outer=("", breaker))
    past_beta, to_beta = (200, ["alpha", "gamma"]), (200, ["alpha", "beta"])

    assert [(await models.answer(BUSY, BUSY))[1] for _ in range(2)] == [list(NAMES)] * 2
    assert await models.answer(BUSY, FINE) == past_beta
    await trio.sleep(19)
    assert await models.answer(BUSY, FINE) == past_beta
    await trio.sleep(1)
    models.play(BUSY, [3.0, *BUSY])
    nursery.start_soon(models.ask)
    await trio.sleep(1)
    assert await models.answer(BUSY, FINE) == past_beta  # somebody else is finding out
    await trio.sleep(3)
    assert await models.answer(BUSY, FINE) == past_beta  # and it was no better
    await trio.sleep(20)
    assert await models.answer(BUSY, FINE) == to_beta
    assert await models.answer(BUSY, BUSY) == (200, list(NAMES))
    assert await models.answer(BUSY, FINE) == to_beta
