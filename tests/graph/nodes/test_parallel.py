"""Node type `parallel`."""

import pytest
import trio
import trio.testing

from tests.fakes.caller import FakeCaller, Said
from tests.fakes.graph import caller_of, ends_of, make_run, run_steps, told
from vsr.deadline import Deadline
from vsr.errors import CallFailed, DeadlineExceeded, GraphFailed, UpstreamReset
from vsr.graph.ledger import LedgerEntry
from vsr.headers import Headers
from vsr.routing.plan import Call
from vsr.routing.ports import CallAnswer, Journal

CALL = {"type": "call", "model": "$item"}
TELL = (
    {"id": "told", "type": "aggregate", "strategy": "told", "from": "$group"},
    {"type": "respond", "from": "$told"},
)
RESET = Said(after_s=1, error=UpstreamReset())


def group(*models: str, **fields: object) -> dict[str, object]:
    """Return a step that calls these models side by side."""
    return {"id": "group", "type": "parallel", "over": list(models), "do": [CALL], **fields}


async def test_outcomes_stand_in_declared_order(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever ends first; the rank tells the order of the ends."""
    run = make_run({"a": Said("A", 3), "b": Said("B", 1), "c": Said("C", 2)})

    assert await told(run, group("a", "b", "c"), *TELL) == "0:A:2 1:B:0 2:C:1"
    assert trio.current_time() == 3
    assert [entry.model for entry in run.ledger.entries] == ["a", "b", "c"]
    assert [entry.step for entry in run.ledger.entries] == [
        f"group[{at}]/call#0" for at in range(3)
    ]


async def test_no_branches_come_to_nothing() -> None:
    """An empty list of items is no fault."""
    run = make_run()

    assert await told(run, group(), *TELL) == ""
    assert run.ledger.entries == []


async def test_branches_may_be_written_one_by_one(autojump_clock: trio.testing.MockClock) -> None:
    """Each with steps of its own; the last one's value is the branch's."""
    text = {"type": "transform", "transformer": "text", "parts": ["x", "$first.content"]}
    branches = [
        [{"id": "first", "type": "call", "model": "a"}, text],
        [{"type": "call", "model": "b"}],
    ]
    run = make_run({"a": Said("A", 1)})

    got = await told(run, {"id": "group", "type": "parallel", "branches": branches}, *TELL)

    assert got == "0:xA:1 1:fine:0"


async def test_branches_see_their_item_and_number() -> None:
    """Under the names that the step gives them."""
    do = [
        {"type": "call", "model": "$who", "request": "$who"},
        {"type": "transform", "transformer": "count", "value": "$at", "more": 10},
    ]
    run = make_run()
    step = group("a", "b", **{"as": "who", "index": "at", "do": do})

    assert await told(run, step, *TELL) == "0:10:0 1:11:1"
    assert caller_of(run).called == ["a", "b"]


async def test_as_many_branches_as_said() -> None:
    """`times` has a number and no item."""
    do = [{"type": "transform", "transformer": "count", "value": "$index", "more": 10}]

    got = await told(make_run(), {"id": "group", "type": "parallel", "times": 3, "do": do}, *TELL)

    assert got == "0:10:0 1:11:1 2:12:2"


@pytest.mark.parametrize(
    ("most", "seen", "takes_s"), [(1, 1, 5), (2, 2, 3), (None, 5, 1), (0, 5, 1)]
)
async def test_concurrency_is_capped(
    autojump_clock: trio.testing.MockClock, most: int | None, seen: int, takes_s: int
) -> None:
    """The next branch begins when one has ended; 0 and null are no cap."""
    run = make_run({name: Said(after_s=1) for name in "abcde"})

    await told(run, group(*"abcde", max_concurrency=most), *TELL)

    assert caller_of(run).most_under_way == seen
    assert trio.current_time() == takes_s
    assert caller_of(run).called == list("abcde")


async def test_first_k_successes_cancel_the_others_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The slow ones are in the ledger as lost, and nobody waits for them."""
    script = {"a": Said("A", 10), "b": Said("B", 3600), "c": Said("C", 20), "d": Said("D", 7200)}
    run = make_run(script)

    got = await told(run, group(*"abcd", first_k=2), *TELL)

    assert got == "0:A:0 1:None:- 2:C:1 3:None:-"
    assert trio.current_time() == 20
    assert caller_of(run).under_way == 0
    assert ends_of(run) == ["a succeeded", "b cancelled lost", "c succeeded", "d cancelled lost"]
    assert [entry.ended_at for entry in run.ledger.entries] == [10, 20, 20, 20]


async def test_branches_that_wait_for_their_turn_never_begin_once_enough_have_succeeded(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """They are lost, and no call of theirs was made."""
    run = make_run({"a": Said(after_s=1)})

    got = await told(run, group(*"abc", first_k=1, max_concurrency=1), *TELL)

    assert got == "0:fine:0 1:None:- 2:None:-"
    assert ends_of(run) == ["a succeeded"]


async def test_success_is_what_the_predicate_says(autojump_clock: trio.testing.MockClock) -> None:
    """A value that does not satisfy it is an outcome all the same."""
    script = {"a": Said("bad", 1), "b": Said("good", 2), "c": Said("good", 3)}
    run = make_run(script)

    got = await told(run, group(*"abc", first_k=1, success={"says": {"text": "good"}}), *TELL)

    assert got == "0:bad:0 1:good:1 2:None:-"


async def test_failed_predicate_fails_its_branch_once() -> None:
    """Its outcome has one rank, and those behind it have the next ones."""
    is_x = {"equals": {"value": "$item", "to": "x"}}
    nothing = {"type": "transform", "transformer": "record", "members": {}}
    branch = {"type": "branch", "cases": [{"when": is_x, "then": [CALL]}], "else": [nothing]}
    step = group("y", "x", do=[branch], success={"says": {"text": "fine"}}, on_error="skip")

    assert await told(make_run(), step, *TELL) == "0:<graph_failed>:0 1:fine:1"


async def test_starts_are_staggered(autojump_clock: trio.testing.MockClock) -> None:
    """Each so long behind the one before, whose call is under way."""
    run = make_run({name: Said(after_s=10) for name in "abc"})

    await told(run, group(*"abc", stagger="2s"), *TELL)

    assert caller_of(run).times == pytest.approx([0, 2, 4])


async def test_second_call_of_a_hedge_is_not_made_when_the_first_is_quick(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """That is the point of it."""
    run = make_run({"a": Said(after_s=1), "b": Said(after_s=1)})

    await told(run, group("a", "b", stagger="2s", first_k=1), *TELL)

    assert (caller_of(run).called, trio.current_time()) == (["a"], 1)


async def test_next_branch_begins_at_once_when_all_before_have_failed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nobody is left to wait for; one that is still under way is."""
    run = make_run({"a": RESET, "b": Said(after_s=30)})

    got = await told(run, group(*"abc", stagger="5s", first_k=1, on_error="skip"), *TELL)

    assert caller_of(run).times == pytest.approx([0, 1, 6])
    assert got == "0:<upstream_reset>:0 1:None:- 2:fine:1"


async def test_success_before_does_not_hurry_the_next_branch(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Only failures do: the distance between two starts is what the step says."""
    run = make_run({"a": Said(after_s=1)})

    await told(run, group("a", "b", stagger="5s"), *TELL)

    assert caller_of(run).times == [0, 5]


async def test_timeout_of_the_group_fails_it(autojump_clock: trio.testing.MockClock) -> None:
    """Unless the step says otherwise."""
    run = make_run({"a": Said(after_s=1), "b": Said(after_s=60)})

    with pytest.raises(DeadlineExceeded):
        await told(run, group("a", "b", timeout="5s"), *TELL)

    assert trio.current_time() == 5
    assert ends_of(run) == ["a succeeded", "b timed_out deadline"]


async def test_group_goes_on_with_what_has_come(autojump_clock: trio.testing.MockClock) -> None:
    """Who is late has failed so; who waited for a turn, too."""
    run = make_run({"a": Said(after_s=1), "b": Said(after_s=60)})
    step = group(*"abc", timeout="5s", on_timeout="partial", max_concurrency=1, on_error="skip")

    got = await told(run, step, *TELL)

    assert got == "0:fine:0 1:<deadline_exceeded>:- 2:<deadline_exceeded>:-"
    assert trio.current_time() == 5
    assert ends_of(run) == ["a succeeded", "b timed_out deadline"]


async def test_first_failure_ends_all_branches(autojump_clock: trio.testing.MockClock) -> None:
    """The step fails with it, at that moment."""
    run = make_run({"a": Said(after_s=60), "b": RESET})

    with pytest.raises(UpstreamReset) as caught:
        await told(run, group(*"abc"), *TELL)

    assert caught.value is RESET.error
    assert trio.current_time() == 1
    assert ends_of(run) == ["a cancelled lost", "b failed", "c succeeded"]


async def test_failures_may_be_outcomes(autojump_clock: trio.testing.MockClock) -> None:
    """`skip` lets the others run on."""
    run = make_run({"a": Said(after_s=2), "b": RESET})

    got = await told(run, group("a", "b", on_error="skip"), *TELL)

    assert got == "0:fine:1 1:<upstream_reset>:0"


async def test_failure_of_the_first_branch_in_declared_order_is_told_in_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """`fail_after_all` waits for everybody."""
    run = make_run({"a": Said(after_s=9), "b": Said(after_s=5, status=500), "c": RESET})

    with pytest.raises(CallFailed):
        await told(run, group(*"abc", on_error="fail_after_all"), *TELL)

    assert trio.current_time() == 9
    assert ends_of(run) == ["a succeeded", "b failed", "c failed"]


async def test_groups_nest(autojump_clock: trio.testing.MockClock) -> None:
    """Ordinals go in declared order through both; inner losers are the inner group's."""
    call = {"type": "call", "model": "$model"}
    inner = {"type": "parallel", "over": ["$item", "slow"], "as": "model", "do": [call]}
    tell = {"type": "transform", "transformer": "shown", "value": "$inner.0.value.content"}
    step = group("a", "b", do=[{"id": "inner", "first_k": 1, **inner, "index": "at"}, tell])
    run = make_run({"a": Said("A", 2), "b": Said("B", 1), "slow": Said(after_s=3600)})

    assert await told(run, step, *TELL) == "0:'A':1 1:'B':0"
    assert [entry.model for entry in run.ledger.entries] == ["a", "slow", "b", "slow"]
    assert ends_of(run)[1::2] == ["slow cancelled lost"] * 2
    assert [entry.ended_at for entry in run.ledger.entries] == [2, 2, 1, 1]


@pytest.mark.parametrize("first", [group(), group("x", "y", do=[{"type": "fail", "message": ""}])])
async def test_turns_are_kept_where_a_branch_begins_with_a_group_that_does_nothing(
    autojump_clock: trio.testing.MockClock, first: dict[str, object]
) -> None:
    """The next branch begins when the first call of this one is under way, not before."""
    empty = [{**first, "id": f"empty{at}", "on_error": "skip"} for at in range(5)]
    branches = [[*empty, {"type": "call", "model": "a"}], [{"type": "call", "model": "b"}]]
    run = make_run({"a": Said(after_s=1), "b": Said(after_s=1)})

    await told(run, {"id": "group", "type": "parallel", "branches": branches}, *TELL)

    assert caller_of(run).called == ["a", "b"]


async def test_outer_group_that_ends_is_the_cause_of_inner_calls_ends(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Lost, not late, though the inner group has a timeout of its own."""
    inner = {"type": "parallel", "over": ["slow"], "timeout": "50s", "do": [CALL]}
    branches = [[inner], [{"type": "call", "model": "a"}]]
    step = {"id": "group", "type": "parallel", "first_k": 1, "branches": branches}
    run = make_run({"slow": Said(after_s=3600), "a": Said(after_s=1)})

    await told(run, step, *TELL)

    assert ends_of(run) == ["slow cancelled lost", "a succeeded"]


class GroupingCaller(FakeCaller):
    """Has a nursery of its own: a cancellation leaves it as a group of them."""

    async def call(
        self, call: Call, deadline: Deadline, *, limit_bytes: int, journal: Journal
    ) -> CallAnswer:
        """Wait in vain, but for `a`."""
        del deadline, limit_bytes, journal
        if call.model == "a":
            return CallAnswer(200, Headers(), b"{}")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 60)
            nursery.start_soon(trio.sleep, 60)
        raise AssertionError


async def test_call_that_was_lost_within_a_nursery_of_its_caller_is_cancelled(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It did not fail."""
    run = make_run(GroupingCaller())

    await told(run, group("b", "a", first_k=1), *TELL)

    assert ends_of(run) == ["b cancelled lost", "a succeeded"]


async def test_loser_that_is_ready_for_its_next_call_does_not_make_it() -> None:
    """No call starts behind the moment in which enough have succeeded."""
    enough = trio.Event()

    class Waiting(FakeCaller):
        async def call(
            self, call: Call, deadline: Deadline, *, limit_bytes: int, journal: Journal
        ) -> CallAnswer:
            del deadline, limit_bytes, journal
            self.calls.append(call)
            if call.model == "late":
                # Nothing cancels a call whose answer has come already.
                with trio.CancelScope(shield=True):
                    await enough.wait()
            return CallAnswer(200, Headers(), b"{}")

    run = make_run(Waiting())

    def watch(entry: LedgerEntry) -> None:
        if entry.outcome is not None and entry.model == "a":
            enough.set()

    run.ledger.watch = watch
    twice = [{"type": "call", "model": "late"}, {"type": "call", "model": "never"}]
    branches = [twice, [{"type": "call", "model": "a"}]]

    await told(run, {"id": "group", "type": "parallel", "first_k": 1, "branches": branches}, *TELL)

    assert ends_of(run) == ["late succeeded", "a succeeded"]


async def test_failure_of_a_branch_has_the_authors_text() -> None:
    """With what the branch sees in it."""
    step = group("a", do=[{"type": "fail", "message": "no {{ item }}", "status": 418}])

    with pytest.raises(GraphFailed, match=r"^no a$") as caught:
        await run_steps(make_run(), step, *TELL)

    assert caught.value.status == 418
