"""One nursery after the other for the requests of a connection: nothing of one reaches the next."""

import logging
from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.demo.raw_client import AnswerEnd, Got, read_answer
from tests.fakes.scripted_run import Script, ScriptedRun, ServedConnection, serve_scripts
from tests.gateway.request_kinds import (
    IN_CHUNKS,
    KEPT,
    KINDS,
    LATE_S,
    REQUEST,
    Kind,
    answer_at_once,
    answer_later,
    beat_the_deadline,
    fail,
    leave_a_child,
    miss_the_deadline,
    stream,
)
from vsr.network.port import NetworkError
from vsr.routing.outcome import Cause


async def _ask(connection: ServedConnection, request: bytes = REQUEST) -> Got:
    await connection.client.send(request)
    return await read_answer(connection.client)


def _check_run(run: ScriptedRun, kind: Kind) -> None:
    """Check that a request had a scope to itself and exactly one end."""
    is_concluded = "conclude" in run.events if kind.is_concluded is None else kind.is_concluded
    assert run.events == ["work", *["conclude"] * is_concluded, "finish"]
    assert (run.cause_at_start, run.was_cancelled_at_start) == (None, False)
    assert run.cause is kind.cause
    assert run.late_children == 0
    assert run.exchange.status == kind.status


@pytest.mark.parametrize("request_", [REQUEST, IN_CHUNKS], ids=["plain", "in chunks"])
@pytest.mark.parametrize("name", KEPT)
async def test_next_request_is_served_as_if_it_were_the_first(
    name: str,
    request_: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whatever became of the one before, and before it begins all of that has ended."""
    kind = KEPT[name]
    connection = await serve_scripts(nursery, kind.script, stream, kind.script, answer_later)

    first = await _ask(connection, request_)
    second = await _ask(connection)
    at = trio.current_time()
    third = await _ask(connection)
    fourth = await _ask(connection)

    assert [got.end for got in (first, second, third, fourth)] == [AnswerEnd.WHOLE] * 4
    assert [first.status, second.status, third.status] == [kind.status, 200, kind.status]
    assert (second.body, fourth.body) == (b"done", b"done")
    assert at == pytest.approx(kind.takes_s + 1)
    for run, of in zip(
        connection.handler.runs, (kind, KEPT["streams"], kind, KEPT["answers"]), strict=True
    ):
        _check_run(run, of)


@pytest.mark.parametrize("name", KEPT)
async def test_deadline_of_one_request_is_none_of_the_next(
    name: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It may wait and work past every deadline that an earlier one had."""
    connection = await serve_scripts(nursery, KEPT[name].script, _answer_late)

    await _ask(connection)
    got = await _ask(connection)

    assert (got.end, got.status) == (AnswerEnd.WHOLE, 200)


async def _answer_late(run: ScriptedRun) -> None:
    await run.exchange.read_body(1000)
    await trio.sleep(20 * LATE_S)
    await run.exchange.respond(200, [], b"done")


async def test_deadline_between_requests_passes_unnoticed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A connection that waits has none."""
    connection = await serve_scripts(nursery, beat_the_deadline, answer_later)

    await _ask(connection)
    await trio.sleep(100)
    got = await _ask(connection)

    assert got.status == 200
    assert not connection.has_returned


async def test_each_request_has_its_own_deadline(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Counted from its own begin, also right behind another's."""
    connection = await serve_scripts(nursery, *[miss_the_deadline] * 3)

    statuses = [(await _ask(connection)).status for _ in range(3)]

    assert statuses == [504] * 3
    assert trio.current_time() == pytest.approx(3 * LATE_S)


@pytest.mark.parametrize("name", KINDS)
async def test_pipelined_request_does_not_suffer_for_the_one_before(
    name: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It waits in our memory, nothing stands between the two: it is served whole or not at all."""
    caplog.set_level(logging.CRITICAL, "vsr.gateway")
    kind = KINDS[name]
    connection = await serve_scripts(nursery, kind.script, answer_later)

    await connection.client.send(REQUEST * 2)
    await trio.sleep(100)

    runs = connection.handler.runs
    _check_run(runs[0], kind)
    assert len(runs) == 1 + kind.is_kept
    assert connection.has_returned is not kind.is_kept
    for run in runs[1:]:
        _check_run(run, KEPT["answers"])


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("at_s", [0.0, 0.25, 0.75, 2.0])
@pytest.mark.parametrize("how", ["client leaves", "drain is forced"])
async def test_request_ended_from_outside_ends_once(
    name: str,
    at_s: float,
    how: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Behind another request on the same connection; no task stays."""
    caplog.set_level(logging.CRITICAL, "vsr.gateway")
    connection = await serve_scripts(nursery, answer_at_once, KINDS[name].script, answer_later)
    before = trio.lowlevel.current_statistics().tasks_living
    await _ask(connection)

    await connection.client.send(REQUEST)
    await trio.sleep(at_s)
    if how == "client leaves":
        connection.client.close()
    else:
        connection.served.force_end()
    await trio.testing.wait_all_tasks_blocked()

    first, second = connection.handler.runs
    assert connection.has_returned
    assert trio.lowlevel.current_statistics().tasks_living == before - 1
    _check_run(first, KEPT["answers at once"])
    assert second.events.count("finish") == 1
    assert second.events.count("conclude") <= 1
    assert second.late_children == 0
    if not second.exchange.has_ended:
        expected = Cause.CLIENT_GONE if how == "client leaves" else Cause.DRAIN
        assert second.cause is expected or second.exchange.status == 500
    assert trio.current_time() <= at_s + 0.01


@pytest.mark.parametrize("how", ["client leaves", "drain is forced"])
async def test_pipelined_request_of_a_client_that_left_is_ended_at_once(
    how: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It begins, since it has arrived, but none of its work is done; it has one end."""

    async def end(run: ScriptedRun) -> None:
        # Without a checkpoint behind it, so that the cancellation meets only the next request.
        await answer_at_once(run)
        if how == "client leaves":
            connection.client.close()
        else:
            connection.served.force_end()

    connection = await serve_scripts(nursery, end, answer_later)

    await connection.client.send(REQUEST * 2)
    await trio.testing.wait_all_tasks_blocked()

    assert connection.has_returned
    assert connection.handler.runs[0].events.count("finish") == 1
    for run in connection.handler.runs[1:]:
        assert run.events[-1] == "finish"
        assert run.events.count("finish") == 1
        assert run.exchange.status == 0
        assert run.cause in {Cause.CLIENT_GONE, Cause.DRAIN}


async def test_bug_in_opening_a_request_closes_the_connection_alone(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """There is no request to answer for; it is logged, and the one before had its end."""
    connection = await serve_scripts(nursery, answer_later)
    await _ask(connection)

    await connection.client.send(REQUEST)  # for which there is no script
    await trio.testing.wait_all_tasks_blocked()

    assert connection.has_returned
    assert connection.client.is_gone
    assert "IndexError" in caplog.text
    _check_run(connection.handler.runs[0], KEPT["answers"])


@pytest.mark.parametrize("script", [answer_later, fail, leave_a_child])
async def test_bug_in_accounting_is_met_once(
    script: Script,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What a request gives back it gives back once, even if that fails; the connection closes."""

    async def work(run: ScriptedRun) -> None:
        run.fails_to_finish = True
        await script(run)

    connection = await serve_scripts(nursery, work)
    await connection.client.send(REQUEST)
    await trio.sleep(10)

    [run] = connection.handler.runs
    assert run.events.count("finish") == 1
    assert connection.has_returned
    assert "LookupError" in caplog.text


async def test_exchange_of_a_waiting_connection_holds_no_task(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """However many requests it has served, a connection is one task."""
    scripts = [kind.script for kind in KEPT.values()] * 3
    connection = await serve_scripts(nursery, *scripts)
    before = trio.lowlevel.current_statistics().tasks_living

    for _ in scripts:
        await _ask(connection)
    await trio.sleep(10)

    assert trio.lowlevel.current_statistics().tasks_living == before
    assert len(connection.handler.runs) == len(scripts)


async def _play(names: list[str], *, pipelined: bool) -> None:
    async with trio.open_nursery() as nursery:
        kinds = [KINDS[name] for name in names]
        connection = await serve_scripts(nursery, *[kind.script for kind in kinds])
        for _ in names:
            try:
                if pipelined:
                    await connection.client.send(REQUEST)
                else:
                    await _ask(connection)
            except NetworkError:
                break  # an earlier request was the last
        await trio.sleep(LATE_S * (len(names) + 1))

        runs = connection.handler.runs
        last = next((at for at, kind in enumerate(kinds) if not kind.is_kept), len(kinds) - 1)
        assert len(runs) == last + 1
        for run, kind in zip(runs, kinds, strict=False):
            _check_run(run, kind)
        assert connection.has_returned is not kinds[last].is_kept
        nursery.cancel_scope.cancel()


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(KEPT)) | st.sampled_from(sorted(KINDS)), min_size=1),
    pipelined=st.booleans(),
)
def test_requests_of_any_kind_in_any_order_keep_to_themselves(
    names: list[str], *, pipelined: bool
) -> None:
    """Each has its own scope, its own cause and exactly one end, up to the last one served."""
    trio.run(
        partial(_play, names, pipelined=pipelined),
        clock=trio.testing.MockClock(autojump_threshold=0),
    )
