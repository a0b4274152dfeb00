"""Node type `call`."""

import pytest
import trio
import trio.testing

from tests.fakes.caller import Said
from tests.fakes.graph import (
    BOUND,
    FakeHops,
    caller_of,
    ends_of,
    make_run,
    problems_of,
    run_steps,
    told,
)
from vsr.errors import CallFailed, DeadlineExceeded, GraphFailed, RoutingFailed, UpstreamReset
from vsr.graph.block import Suspension
from vsr.graph.budget import Budget, Limits
from vsr.graph.run import TailCall
from vsr.graph.suspend.record import Record
from vsr.graph.suspend.waiting import Waiting
from vsr.resources.graph import ParamSpec, ParamType
from vsr.resources.reliability import CallPolicy
from vsr.routing.outcome import Terminal, Usage

DONE = {"type": "respond", "from": "$one"}


def call(**fields: object) -> dict[str, object]:
    """Return a call to a model."""
    return {"id": "one", "type": "call", "model": "a", **fields}


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({}, ["What is it?"]),
        ({"request": "More."}, ["What is it?", "More."]),
        ({"request": "$request"}, ["What is it?"]),
        ({"edits": [{"append": "x"}]}, ["What is it?", "x"]),
        ({"edits": [{"replace_last": "x"}]}, ["x"]),
        ({"edits": [{"append": "x"}, {"replace_last": "y"}]}, ["What is it?", "y"]),
        ({"edits": [{"replace_last": "y"}, {"append": "x"}]}, ["y", "x"]),
        ({"request": "More.", "edits": [{"fresh": "x"}, {"append": "y"}]}, ["x", "y"]),
        ({"edits": [{"messages": [{"role": "user", "content": "x"}]}]}, ["What is it?", "x"]),
    ],
)
async def test_request_is_the_clients_with_edits_made_in_order(
    fields: dict[str, object], messages: list[str]
) -> None:
    """Whatever else the client said stays."""
    run = make_run()

    await run_steps(run, call(**fields), DONE)

    asked = caller_of(run).asked()
    assert asked["model"] == "a"
    assert [each["content"] for each in asked["messages"]] == messages  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("edit", "changed"),
    [
        ({"tools": "strip"}, {"tools": None}),
        ({"tools": "keep"}, {}),
        ({"set": {"top_k": 3, "seed": None}}, {"top_k": 3}),
        ({"unset": ["seed"]}, {"seed": None}),
        ({"only": ["seed"]}, {"tools": None, "odd": None}),
        ({"members": "standard"}, {"odd": None}),
        ({"temperature": 0}, {"temperature": 0}),
        ({"max_completion_tokens": 9}, {"max_completion_tokens": 9}),
        ({"logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"logprobs": None}, {}),
        (
            {"response_format": {"type": "json_object"}},
            {"response_format": {"type": "json_object"}},
        ),
        (
            {"chat_template_kwargs": {"thinking": False}},
            {"chat_template_kwargs": {"thinking": False}},
        ),
    ],
)
async def test_edits_of_members(edit: dict[str, object], changed: dict[str, object]) -> None:
    """None of them touches another member; a null changes nothing."""
    client = b'{"messages":[],"seed":7,"odd":1,"tools":[{"type":"function"}]}'
    run = make_run(request=client)

    await run_steps(run, call(edits=[edit]), DONE)

    before = {"messages": [], "seed": 7, "odd": 1, "tools": [{"type": "function"}]}
    wanted = {**before, "stream": False, "model": "a", **changed}
    assert caller_of(run).asked() == {k: v for k, v in wanted.items() if v is not None}


def test_members_of_the_router_cannot_be_set() -> None:
    """They have edits of their own, or none."""
    [found] = problems_of([call(edits=[{"set": {"stream": True}}]), DONE])

    assert "stream has an edit of its own" in found


async def test_candidate_is_called_by_its_adapter() -> None:
    """A model with what is known of it is a model to call."""
    specs = {"refs": ParamSpec(ParamType.MODEL_REFS)}
    params = {"refs": [{"model": "alpha", "lora_name": "tuned"}]}
    run = make_run()

    await run_steps(run, call(model="$params.refs.0"), DONE, specs=specs, params=params)

    assert caller_of(run).called == ["tuned"]


async def test_timeout_is_the_calls_own(autojump_clock: trio.testing.MockClock) -> None:
    """The failure goes to the step, the terminal class to the ledger."""
    run = make_run({"a": Said(after_s=60)})

    with pytest.raises(DeadlineExceeded):
        await run_steps(run, call(timeout="2s"), DONE)

    assert trio.current_time() == 2
    assert ends_of(run) == ["a timed_out deadline"]


async def test_timeout_never_extends_the_deadline(autojump_clock: trio.testing.MockClock) -> None:
    """It narrows."""
    run = make_run({"a": Said(after_s=60)}, timeout_s=1)

    with pytest.raises(DeadlineExceeded):
        await run_steps(run, call(timeout="20s"), DONE)

    assert (trio.current_time(), ends_of(run)) == (1, ["a timed_out deadline"])


async def test_status_that_is_no_success_fails_the_call() -> None:
    """Of its body only the size is told."""
    run = make_run({"a": Said(status=500, body=b"secret" * 2000)})

    with pytest.raises(CallFailed) as caught:
        await run_steps(run, call(), DONE)

    text = "request failed with status 500 (error_body_bytes=8192, truncated=true)"
    assert (str(caught.value), caught.value.backend_status) == (text, 500)
    [entry] = run.ledger.entries
    assert entry.outcome is not None
    assert (entry.outcome.terminal, entry.outcome.status) == (Terminal.FAILED, 500)


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b""])
async def test_answer_that_cannot_be_read_fails_the_call(body: bytes) -> None:
    """And costs what was reserved: nobody knows what was used."""
    run = make_run({"a": Said(body=body)}, budget=Budget(Limits(max_tokens=100)))

    with pytest.raises(GraphFailed, match="failed to parse response"):
        await run_steps(run, call(), DONE)

    assert ends_of(run) == ["a failed"]
    assert (run.budget.spent_tokens, run.budget.reserved_tokens) == (BOUND, 0)


@pytest.mark.parametrize("error", [UpstreamReset(), KeyError("a bug")])
async def test_failure_of_the_caller_closes_the_call(error: Exception) -> None:
    """A bug of ours, too."""
    run = make_run({"a": Said(error=error)}, budget=Budget(Limits(max_tokens=100)))

    with pytest.raises(type(error)):
        await run_steps(run, call(), DONE)

    assert ends_of(run) == ["a failed"]
    assert run.budget.reserved_tokens == 0


async def test_call_that_cannot_be_made_is_in_no_ledger() -> None:
    """A model that there is not, say."""
    run = make_run(hops=FakeHops(error=RoutingFailed()))

    with pytest.raises(RoutingFailed):
        await run_steps(run, call(), DONE)

    assert run.ledger.entries == []
    assert run.budget.hops == 0


async def test_success_settles_what_was_used() -> None:
    """And the outcome says so."""
    run = make_run({"a": Said(usage=(4, 5))}, budget=Budget(Limits(max_tokens=100)))

    await run_steps(run, call(), DONE)

    [entry] = run.ledger.entries
    assert entry.outcome is not None
    assert (entry.outcome.usage, entry.outcome.status) == (Usage(4, 5), 200)
    assert (run.budget.spent_tokens, run.budget.reserved_tokens) == (9, 0)


@pytest.mark.parametrize(
    ("words", "counted"),
    [
        (["usage", "models_used", "iterations"], (10, ["a"], 1)),
        (["usage"], (10, [], 0)),
        ([], (0, [], 0)),
        (["attempted_models", "attempts"], (0, ["a"], 1)),
    ],
)
async def test_call_counts_as_its_step_says(
    words: list[str], counted: tuple[int, list[str], int]
) -> None:
    """In what the answer tells of the run."""
    run = make_run()

    await run_steps(run, call(account=words), DONE)

    account = run.account
    assert (account.usage.total_tokens, account.models_used, account.iterations) == counted


async def test_failed_call_counts_only_as_an_attempt() -> None:
    """When it begins."""
    run = make_run({"a": Said(error=UpstreamReset())})
    words = ["usage", "models_used", "attempts", "iterations"]

    await run_steps(run, call(account=words, on_error="skip"), {"type": "respond", "from": "none"})

    assert (run.account.models_used, run.account.iterations) == ([], 1)


async def test_unknown_usage_is_noted() -> None:
    """It is not nothing."""
    run = make_run({"a": Said(usage=None)})

    await run_steps(run, call(), DONE)

    assert (run.account.unknown, run.account.usage.total_tokens) == (1, 0)


async def test_reliability_of_the_step_reaches_the_call() -> None:
    """It changes the model's own policy."""
    run = make_run()

    await run_steps(run, call(reliability={"per_try_timeout": "7s"}), DONE)

    assert [each.policy for each in caller_of(run).calls] == [CallPolicy(per_try_s=7)]


def test_faults_of_reliability_are_told_where_they_stand() -> None:
    """As those of a decision are."""
    found = problems_of([call(reliability={"nonsense": 1}), DONE])

    assert any(each.startswith("graphs.main.steps.0.reliability") for each in found)


async def test_collected_stream_is_asked_for_and_read_whole() -> None:
    """With its usage."""
    events = b'data: {"choices":[{"delta":{"content":"A"}}]}\n\ndata: [DONE]\n\n'
    run = make_run({"a": Said(body=events)})

    assert await told(run, call(stream="collect"), {"type": "respond", "from": "ok"}) == "ok"
    assert caller_of(run).asked()["stream"] is True
    assert caller_of(run).asked()["stream_options"] == {"include_usage": True}


async def test_tail_is_reserved_and_handed_out() -> None:
    """Its adapter makes it and closes its entry."""
    run = make_run(budget=Budget(Limits(max_tokens=100)))

    tail = await run_steps(run, call(stream="tail", request="More."), DONE)

    assert isinstance(tail, TailCall)
    assert (tail.model, caller_of(run).calls) == ("a", [])
    assert tail.body is not None
    assert tail.body.question == "More."
    assert run.ledger.open_entries == [tail.entry]
    assert run.budget.reserved_tokens == BOUND


@pytest.mark.parametrize("after", [{"type": "respond", "from": "x"}, DONE | {"id_prefix": "x"}])
def test_tail_has_nothing_but_a_plain_answer_behind_it(after: dict[str, object]) -> None:
    """Nobody would see what else is said."""
    [found] = problems_of([call(stream="tail"), after])

    assert found.startswith("graphs.main.steps.0.stream: tail is not the graph's last call")


async def test_tool_calls_suspend_a_run_that_can_be_kept() -> None:
    """The value is where it goes on, and what the client is to do."""
    run = make_run({"a": Said(tool="look")})
    run.waiting = Waiting(Record(), bytes)

    got = await run_steps(run, call(on_tool_calls="suspend"), DONE)

    assert isinstance(got, Suspension)
    assert (got.path, got.pending.reply.tool_calls[0].name) == ("one", "look")
    assert not run.waiting.record.has("one")


async def test_tool_calls_fail_a_run_that_cannot_be_kept() -> None:
    """A graph without a store."""
    run = make_run({"a": Said(tool="look")})

    with pytest.raises(GraphFailed, match="nowhere to keep"):
        await run_steps(run, call(on_tool_calls="suspend"), DONE)


async def test_answer_without_tool_calls_does_not_suspend() -> None:
    """There is nothing to wait for."""
    assert await told(make_run(), call(on_tool_calls="suspend"), DONE) == "fine"
