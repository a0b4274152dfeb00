"""Runs that cannot go on, or fail when they do: who may try again."""

from os import urandom
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing

from tests.conformance.looper_reply import reply_of
from tests.engine.suspending import (
    DRAFTED,
    ONE_CALL,
    QUESTION,
    Reply,
    Scene,
    answered_by,
    asks,
    kept_run,
    says,
    start,
    start_answering,
    state_of,
    store_of,
    tool,
)
from vsr.graph.suspend.file import FileStore

NOT_FOUND = "not found or expired"


async def test_of_two_that_go_on_with_one_run_one_does(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A client that sends its answers twice must not have the rest of the graph run twice."""
    scene = await start(nursery, ONE_CALL, {"a": [asks("x"), says("done", delay_ms=50)]})
    first = await scene.ask([QUESTION])
    got: list[Reply] = []

    async def go_on() -> None:
        got.append(await scene.resume(first))

    async with trio.open_nursery() as racers:
        racers.start_soon(go_on)
        racers.start_soon(go_on)

    assert sorted(each.status for each in got) == [200, 500]
    [loser] = [each for each in got if each.status == 500]
    assert NOT_FOUND in loser.text
    assert scene.called() == ["a", "a"]
    assert NOT_FOUND in (await scene.resume(first)).text


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["flowtool_{other}__0__x"], NOT_FOUND),
        (["flowtool_{state}__7__x", "{0}", "{1}"], "is not pending"),
        (["{0}", "{1}", "call_of_somebody_else"], "does not belong to a workflow"),
        (["{0}", "{1}", "flowtool_{other}__0__x"], "belongs to another workflow tool state"),
        (["{0}"], "missing tool result for workflow tool_call_id"),
    ],
)
async def test_answers_that_do_not_fit_are_refused_and_change_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, ids: list[str], words: str
) -> None:
    """No call is made for them, and the client may send the right ones."""
    scene = await start(nursery, ONE_CALL, {"a": [asks("x", "y"), says("done")]})
    first = await scene.ask([QUESTION])
    names = {"state": state_of(first), "other": "0" * 24}

    sent = [tool(each.format(*first.tool_ids, **names)) for each in ids]
    refused = await scene.ask([*answered_by(first)[:2], *sent])

    assert refused.status == 500
    assert words in refused.text
    assert scene.called() == ["a"]
    assert (await scene.resume(first)).text == "done"


async def test_run_of_another_principal_does_not_exist(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Whoever gets hold of an id learns nothing by it, and takes nothing away."""
    scene = await start(nursery, ONE_CALL, {"a": [asks("x"), says("done")]})
    first = await scene.ask([QUESTION])
    run = await kept_run(scene, first)
    foreign = msgspec.structs.replace(run.identity, principal='["","mallory"]')
    theirs = msgspec.structs.replace(run, identity=foreign)
    await store_of(scene).put(theirs, now_unix_s=0)

    assert NOT_FOUND in (await scene.resume(first)).text

    assert await kept_run(scene, first) == theirs
    assert scene.called() == ["a"]


async def test_run_that_waited_too_long_does_not_exist(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its time is the document's."""
    scene = await start(nursery, ONE_CALL, {"a": [asks("x")]})
    first = await scene.ask([QUESTION])
    run = await kept_run(scene, first)
    old = msgspec.structs.replace(run, created_unix_s=run.created_unix_s - 1801)
    await store_of(scene).put(old, now_unix_s=0)

    assert NOT_FOUND in (await scene.resume(first)).text


async def test_reload_keeps_runs_and_refuses_those_of_a_graph_that_changed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The steps that are left must be those that the run began with."""
    scene = await start(nursery, ONE_CALL, {"a": [asks("x"), asks("y"), says("done")]})
    first = await scene.ask([QUESTION])
    scene.router.activate(scene.document(ONE_CALL), 2)
    second = await scene.resume(first)
    assert second.status == 200

    scene.router.activate(scene.document(DRAFTED), 3)
    refused = await scene.resume(second)
    scene.router.activate(scene.document(ONE_CALL), 4)

    assert "belongs to another version of its workflow" in refused.text
    assert (await scene.resume(second)).text == "done"


@pytest.mark.parametrize("on_error", ["fail", "skip", "value"])
async def test_failure_of_the_call_that_goes_on_fails_the_run_and_keeps_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, on_error: str
) -> None:
    """Whatever the steps make of failures: the client can send its answers once more."""
    graph = f"""
steps:
  - type: loop
    times: 1
    on_error: {on_error}
    do: [{{id: answer, type: call, model: a, on_tool_calls: suspend, on_error: {on_error}}}]
  - {{type: respond, from: went on}}
"""
    scene = await start(nursery, graph, {"a": [asks("x"), {"status": 500}, says("done")]})
    first = await scene.ask([QUESTION])

    failed = await scene.resume(first)

    assert failed.text.startswith('workflow tool resume failed for model "a": ')
    assert (await scene.resume(first)).text == "went on"


async def test_failure_behind_the_call_that_goes_on_keeps_the_run(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As it was when it stopped: the call is made again, too."""
    graph = """
steps:
  - {id: one, type: call, model: a, on_tool_calls: suspend}
  - {id: two, type: call, model: b}
  - {type: respond, from: $two}
"""
    replies = {"a": [asks("x"), says("A"), says("A")], "b": [{"status": 500}, says("B")]}
    scene = await start(nursery, graph, replies)
    first = await scene.ask([QUESTION])

    assert (await scene.resume(first)).status == 502
    last = await scene.resume(first)

    assert (last.text, last.body["usage"]["total_tokens"]) == ("B", 4)
    assert scene.called() == ["a", "a", "b", "a", "b"]


async def test_client_that_leaves_while_its_run_goes_on_may_come_back(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The call under way is left at once, and the run is kept."""
    replies = {"a": [asks("x"), says("never", delay_ms=60_000), says("done")]}
    scene = await start(nursery, ONE_CALL, replies)
    first = await scene.ask([QUESTION])
    scene.called()

    await scene.leave(answered_by(first), after_s=5)

    [left] = scene.backend.take_calls()
    assert left.was_left
    assert (await scene.resume(first)).text == "done"


async def test_refused_reservation_is_told_as_such_and_keeps_the_run(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A tool's answer may be longer than what the graph may spend on one request."""
    graph = "limits: {max_tokens: 300}" + ONE_CALL
    scene = await start(nursery, graph, {"a": [asks("x"), says("done")]})
    first = await scene.ask([QUESTION], max_completion_tokens=10)
    assert first.status == 200

    refused = await scene.resume(first, "word " * 1000)

    assert (refused.status, refused.body["error"]["code"]) == (429, "budget_exhausted")
    assert (await scene.resume(first)).text == "done"


async def test_another_process_goes_on_with_a_run_in_files(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    """Workers share them, and a restart loses none."""
    replies = [asks("x"), says("done")]

    async def one_more() -> Scene:
        return await start_answering(
            nursery,
            ONE_CALL,
            lambda call: reply_of(replies.pop(0), call.body["model"]),
            open_states=lambda _: FileStore(tmp_path, urandom),
        )

    first = await (await one_more()).ask([QUESTION])
    other = await one_more()

    assert (await other.resume(first)).text == "done"
    assert NOT_FOUND in (await other.resume(first)).text
