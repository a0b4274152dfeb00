"""Which failures of a call go on to another model, to which, and for how long."""

from collections.abc import Sequence
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, Got, chat_body
from tests.engine.stepped_backend import EVENT_STREAM, Act, SteppedBackend, Steps, chunk
from tests.engine.wired import CHAT_PIECES, COMPLETION, whole
from tests.fakes.router import RunningRouter, clusters_of, document_of, model_of, start_router
from vsr.http.framing import RequestHead
from vsr.network.memory import MemoryNetwork

NAMES = ("alpha", "beta", "gamma")
ERROR = b'{"error": {"message": "of the backend", "type": "server_error", "code": "odd"}}'
BUSY = whole(503, ERROR)
FINE = whole(200, COMPLETION)
HUNG: Steps = [Act.HANG]
TRIES = "enabled: true, per_attempt_timeout: 4s, total_timeout: 10s"
REFUSED = whole(200, COMPLETION.replace(b'"stop"', b'"content_filter"'))


@attrs.define(eq=False)
class Models:
    """A Router whose one decision has several models, each with a backend of its own."""

    router: RunningRouter
    backends: dict[str, SteppedBackend]
    seen: list[tuple[RequestHead, bytes]]
    """What all backends were asked, in order."""
    document: str

    @property
    def called(self) -> list[str]:
        """Return the models whose backends were asked, in order."""
        return [head.fields[b"x-selected-model"].decode() for head, _ in self.seen]

    def play(self, *steps: Steps) -> None:
        """Let the models answer with these steps, in their order."""
        for backend, each in zip(self.backends.values(), steps, strict=False):
            backend.steps = each

    async def ask(self, text: str = "Hello there", **members: object) -> Got:
        """Ask the decision, unless a member names another model."""
        return await self.router.ask(chat_body(text, **({"model": "auto"} | members)))

    async def answer(
        self, *steps: Steps, text: str = "Hello there", **members: object
    ) -> tuple[int, list[str]]:
        """Return the status that a client gets, and who was called for it."""
        self.play(*steps)
        del self.seen[:]
        return (await self.ask(text, **members)).status, self.called

    def refuse(self, name: str) -> None:
        """Let nobody connect to a model's backend any more."""
        self.router.network.forget(self.backends[name].port)

    async def last_log(self) -> dict[str, Any]:
        """Return the last line of the access log."""
        return (await self.router.log())[-1]

    async def held(self) -> list[int]:
        """Return what requests hold: leases, connections, and slots of each model."""
        leases, connections = await self.router.held()
        states = clusters_of(self.router.generation).states.values()
        slots = [state.gate.breaker.active + state.slots.taken for state in states]
        return [leases, connections, *slots]


async def start(
    nursery: trio.Nursery,
    policy: str = "enabled: true",
    *,
    models: Sequence[str] = NAMES,
    outer: Sequence[str] = ("", ""),
    decision: str = "",
    **reliability: str,
) -> Models:
    """Start a Router whose models all answer `COMPLETION`.

    Args:
        nursery: all of it lives there.
        policy: members of the decision's `fallback`, in YAML's flow style.
        models: of the decision, in order.
        outer: the same of `global.router` and of the recipe.
        decision: its `reliability`, likewise.
        reliability: members of the named models' `reliability`.
    """
    network = MemoryNetwork()
    seen: list[tuple[RequestHead, bytes]] = []
    backends = {}
    for name in models:
        backends[name] = await SteppedBackend(network, FINE).start(nursery)
        backends[name].seen = seen
    entries = [
        model_of(
            backend.port,
            name,
            endpoint=f"{name}.test:{backend.port}",
            provider_model_id=f"{name}-real",
            reliability=f"{{{reliability.get(name, '')}}}",
        )
        for name, backend in backends.items()
    ]
    refs = ", ".join(f"{{model: {name}}}" for name in models)
    routing = (
        f"{{fallback: {{{outer[1]}}}, decisions: [{{name: all, modelRefs: [{refs}], "
        f"fallback: {{{policy}}}, reliability: {{{decision}}}}}]}}"
    )
    document = document_of(*entries, routing=routing)
    document += f"\nglobal: {{router: {{fallback: {{{outer[0]}}}}}}}"
    return Models(await start_router(nursery, network, document), backends, seen, document)


@pytest.mark.parametrize(
    ("codes", "status", "goes_on"),
    [
        ("", 502, True),
        ("", 503, True),
        ("", 504, True),
        ("", 500, False),
        ("", 429, False),
        ("[429]", 429, True),
        ("[429]", 503, False),
        ("[404]", 404, True),
        ("[500, 302]", 302, True),
        ("[200]", 200, False),
    ],
)
async def test_listed_status_goes_on(
    *,
    codes: str,
    status: int,
    goes_on: bool,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Only what is listed, but never a success; a list replaces the one of the defaults."""
    listed = f", retryable_status_codes: {codes}" if codes else ""
    models = await start(nursery, f"enabled: true{listed}")

    got = await models.answer(whole(status, ERROR))

    assert got == ((200, ["alpha", "beta"]) if goes_on else (status, ["alpha"]))


async def fail(models: Models, failure: str) -> tuple[int, list[str]]:
    """Return what comes of one request whose first call ends so."""
    if failure == "connect":
        models.refuse("alpha")
    steps: dict[str, Steps] = {
        "timeout": HUNG,
        "5xx": whole(500, ERROR),
        "429": whole(429, ERROR),
        "content_refusal": REFUSED,
        "reset": [Act.RESET],
    }
    return await models.answer(steps.get(failure, FINE))


_FAILURES = ("timeout", "5xx", "429", "connect", "content_refusal")


@pytest.mark.parametrize("trigger", _FAILURES)
@pytest.mark.parametrize("failure", [*_FAILURES, "reset"])
async def test_trigger_fires_for_its_failures_alone(
    trigger: str, failure: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report R9: each fires, and no other; local replies of 503, 504 are among `5xx`."""
    more = f"retryable_status_codes: [599], triggers: ['{trigger}']"
    models = await start(nursery, f"enabled: true, {more}", alpha="total_timeout: 5s")
    fires = trigger == failure or (trigger == "5xx" and failure in {"timeout", "connect", "reset"})

    status, called = await fail(models, failure)

    assert called[-1:] == (["beta"] if fires else [] if failure == "connect" else ["alpha"])
    if fires:
        assert status == 200


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_fault_of_the_client_goes_nowhere(
    status: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With every trigger there is: another model would say the same."""
    triggers = ", ".join(f"'{each}'" for each in _FAILURES)
    models = await start(nursery, f"enabled: true, triggers: [{triggers}]")

    assert await models.answer(whole(status, ERROR)) == (status, ["alpha"])


@pytest.mark.parametrize(
    ("codes", "steps", "goes_on"),
    [
        ("[502]", [b"nonsense\r\n\r\n"], True),
        ("[503, 504]", [b"nonsense\r\n\r\n"], False),
        ("[503]", [Act.CLOSE], True),
        ("[502, 504]", [Act.CLOSE], False),
        ("[504]", HUNG, True),
        ("[502, 503]", HUNG, False),
    ],
)
async def test_failure_counts_as_the_status_of_its_local_reply(
    *,
    codes: str,
    steps: Steps,
    goes_on: bool,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A malformed answer 502, a reset 503, the total timeout 504."""
    policy = f"enabled: true, retryable_status_codes: {codes}"
    models = await start(nursery, policy, alpha="total_timeout: 5s")

    status, called = await models.answer(steps)

    assert called == (["alpha", "beta"] if goes_on else ["alpha"])
    assert (status == 200) is goes_on


@pytest.mark.parametrize(
    ("router", "recipe", "decision", "goes_on"),
    [
        ("", "", "", False),
        ("enabled: true", "", "", True),
        ("", "enabled: true", "", True),
        ("", "", "enabled: true", True),
        ("enabled: true", "enabled: false", "", False),
        ("enabled: true", "", "enabled: false", False),
        ("", "enabled: true", "enabled: false", False),
        ("enabled: false", "enabled: true", "", True),
        ("enabled: true", "enabled: false", "enabled: true", True),
        ("enabled: true", "", "max_attempts: 2", True),
        ("enabled: true", "", "max_attempts: 1", False),
    ],
)
async def test_innermost_layer_that_says_so_decides(
    *,
    router: str,
    recipe: str,
    decision: str,
    goes_on: bool,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An explicit `false` too; what says nothing of it inherits."""
    models = await start(nursery, decision, outer=(router, recipe))

    got = await models.answer(BUSY)

    assert got == ((200, ["alpha", "beta"]) if goes_on else (503, ["alpha"]))


async def test_one_model_has_nowhere_to_go(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its failure is the answer, even where a last resort is written down."""
    policy = "enabled: true, last_resort: {content: later}"
    alone = await start(nursery, policy, models=["alpha"])

    assert await alone.answer(BUSY) == (503, ["alpha"])


async def test_named_model_is_not_replaced(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Whoever names a model gets that one or none."""
    models = await start(nursery)

    assert await models.answer(BUSY, model="alpha") == (503, ["alpha"])


async def test_request_with_a_tool_s_result_stays(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The tool was called for the first model; a call that awaits its result is another thing."""
    models = await start(nursery)
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    told = [*asked, {"role": "tool", "tool_call_id": "c1", "content": "42"}]

    assert await models.answer(BUSY, messages=told) == (503, ["alpha"])
    assert await models.answer(BUSY, messages=asked) == (200, ["alpha", "beta"])


async def test_body_that_is_not_kept_is_not_sent_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """`replay_bytes` of the model that failed, to the byte."""
    models = await start(nursery, alpha="replay_bytes: 500")

    await models.answer(text="")
    most = 500 - len(models.seen[0][1])

    assert await models.answer(BUSY, text="x" * most) == (200, ["alpha", "beta"])
    assert await models.answer(BUSY, text="x" * (most + 1)) == (503, ["alpha"])


async def test_evidence_forbids_what_may_have_been_done(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """`known_zero` lets a refused connection go on, and no request that was written."""
    models = await start(nursery, alpha="retry_evidence: known_zero")

    assert await models.answer(BUSY) == (503, ["alpha"])
    assert await models.answer([Act.RESET]) == (503, ["alpha"])
    models.refuse("alpha")
    assert await models.answer() == (200, ["beta"])


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_attempts_are_counted_with_the_first(
    most: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """In the decision's order, each model once."""
    models = await start(nursery, f"enabled: true, max_attempts: {most}")

    assert await models.answer(BUSY, BUSY, BUSY) == (503, list(NAMES[:most]))


async def test_candidates_run_out(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """However many attempts there might be; the order is that of the decision."""
    names = ["beta", "gamma", "alpha"]
    models = await start(nursery, "enabled: true, max_attempts: 9", models=names)

    assert await models.answer(BUSY, BUSY, BUSY) == (503, names)


@pytest.mark.parametrize("name", ["alpha", "beta"])
async def test_retries_of_a_model_come_before_the_next_model(
    name: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Those of the first, and those that a candidate has of its own."""
    models = await start(nursery, **{name: "retry_count: 2, retry_on: 5xx"})
    status, called = await models.answer(BUSY, BUSY)

    assert status == 200
    assert called == [each for each in NAMES for _ in range(3 if each == name else 1)]
    assert (await models.last_log())["attempts"] == 5


@pytest.mark.parametrize("broken", [Act.RESET, Act.CLOSE])
async def test_nothing_is_begun_anew_behind_the_first_byte(
    broken: Act, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Neither behind the first model's nor behind a candidate's."""
    models = await start(nursery)
    begun: Steps = [EVENT_STREAM, chunk(CHAT_PIECES[0]), broken]

    models.play(begun)
    assert (await models.ask(stream=True)).end is not AnswerEnd.WHOLE
    models.play(BUSY, begun)
    assert (await models.ask(stream=True)).end is not AnswerEnd.WHOLE

    assert models.called == ["alpha", "alpha", "beta"]


async def test_first_request_of_a_process_finds_its_way_past_a_dead_model(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report R8: nothing was learned yet, and the answer is 200 all the same."""
    models = await start(nursery)
    models.refuse("alpha")

    assert await models.answer() == (200, ["beta"])
