"""What operators see of the requests of one process, under way and ended."""

import msgspec
import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.graph_scene import BODY, said, start_graph
from tests.fakes.router import RunningRouter, document_of, start_router
from tests.faults.moments import request_of
from tests.gateway.test_accounting import PARALLEL, SEQUENCE, TAIL
from tests.upstream.scenes import SILENT, PlayingBackend, failing, model_over, start_backends
from vsr.gateway.request_views import RequestWatch, path_of
from vsr.gateway.requests import KEPT
from vsr.network.memory import MemoryNetwork
from vsr.routing.request_views import RequestDetail, RequestList

NO_SUCH = "no-such-id"
CANARY = "canary"
KEYWORDS = """
  {signals: {keywords: [{name: sums, operator: OR, keywords: [sum]}]},
   decisions: [{name: maths, priority: 7, modelRefs: [{model: alpha}],
     rules: {operator: AND, conditions: [{type: keyword, name: sums}]}}]}"""


def watch_of(router: RunningRouter) -> RequestWatch:
    """Return what operators ask."""
    return RequestWatch(router.router.gateway.requests)


def listed(router: RunningRouter, limit: int = 100) -> RequestList:
    """Return all requests."""
    return watch_of(router).list(limit)


def only(router: RunningRouter) -> RequestDetail:
    """Return the explanation of the one request that there is."""
    told = listed(router)
    [one] = [*told.under_way, *told.ended]
    found = watch_of(router).find(one.id, one.start_time)
    assert found is not None
    return found


def states_of(detail: RequestDetail) -> tuple[dict[str, str], list[tuple[str, str | None, str]]]:
    """Return the states of the steps and calls of a request's graph."""
    graph = detail.routing.graph
    assert graph is not None
    steps: dict[str, str] = {each.path: each.state for each in graph.steps}
    return steps, [(each.step, each.model, each.state) for each in graph.calls]


@pytest.fixture
async def plain(nursery: trio.Nursery) -> tuple[RunningRouter, list[PlayingBackend]]:
    """Return a Router whose one model answers after two seconds, the second time."""
    network = MemoryNetwork()
    slow = (2.0, said())
    backends = await start_backends(nursery, network, [[failing(503), slow]])
    retry = "retry_count: 1, retry_on: 5xx, retry_back_off_base: 1ms"
    document = document_of(model_over(backends, retry), routing=KEYWORDS)
    return await start_router(nursery, network, document), backends


async def test_plain_request_under_way_is_told_with_its_attempts(
    plain: tuple[RunningRouter, list[PlayingBackend]],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """What it asks for, why it goes where it goes, and the endpoint that it waits for."""
    router, _ = plain
    lines = [(b"x-request-id", b"mine/1")]
    target = b"/v1/chat/completions?key=canary-query"
    body = chat_body("the sum canary-prompt", model="auto")
    nursery.start_soon(lambda: router.ask(body, target=target, lines=lines))
    await trio.sleep(1)

    detail = only(router)

    request, routing = detail.request, detail.routing
    assert (request.id, request.stage, request.outcome) == ("mine/1", "calling", None)
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert (request.model_asked, request.model, request.decision) == ("auto", "alpha", "maths")
    assert (request.listener, request.protocol, request.config_version) == ("http", "HTTP/1.1", 1)
    assert request.duration_ms == pytest.approx(1000, abs=1)
    assert [(each.endpoint, each.state, each.status) for each in detail.attempts] == [
        ("backend-1", "failed", 503),
        ("backend-1", "running", None),
    ]
    decision = routing.decision
    assert (decision.because, decision.name, decision.rules) == (
        "decision",
        "maths",
        "keyword:sums",
    )
    assert (decision.matched, decision.priority, decision.method) == (
        ("keyword:sums",),
        7,
        "static",
    )
    assert [(each.type, each.name, each.confidence) for each in routing.signals] == [
        ("keyword", "sums", 1.0)
    ]
    assert (detail.usage, detail.transfer) == (None, None)
    assert listed(router).under_way_total == 1
    no_secret(detail)


async def test_plain_request_that_ended_is_explained(
    plain: tuple[RunningRouter, list[PlayingBackend]], autojump_clock: trio.testing.MockClock
) -> None:
    """With its ledger, its usage, and what went over the wire."""
    router, _ = plain
    await router.ask(chat_body("the sum canary-prompt", model="auto"))

    detail = only(router)

    request, ledger, transfer = detail.request, detail.routing.ledger, detail.transfer
    assert (request.stage, request.status, request.outcome) == ("ended", 200, "succeeded")
    assert (request.model_asked, request.attempts, request.graph) == ("auto", 2, None)
    assert [each.state for each in detail.attempts] == ["failed", "succeeded"]
    assert detail.attempts[1].ended_ms == pytest.approx(2000, abs=50)
    assert detail.usage is not None
    assert (detail.usage.prompt_tokens, detail.usage.completion_tokens) == (3, 4)
    assert ledger is not None
    [entry] = ledger.entries
    assert (ledger.attempts, ledger.spent_tokens, ledger.max_tokens) == (2, 7, None)
    assert (entry.model, entry.state, entry.prompt_tokens) == ("alpha", "succeeded", 3)
    assert [each.settled for each in entry.reservations] == [True, True]
    assert transfer is not None
    assert (transfer.flags, transfer.bytes_sent > 0) == ("-", True)
    assert listed(router).under_way_total == 0
    no_secret(detail)


async def test_request_that_is_refused_is_kept_with_its_code(
    plain: tuple[RunningRouter, list[PlayingBackend]], autojump_clock: trio.testing.MockClock
) -> None:
    """Though nothing was decided."""
    router, _ = plain
    await router.ask(b"nonsense canary-prompt")

    detail = only(router)

    assert (detail.request.status, detail.request.outcome) == (400, "failed")
    assert detail.request.error == "invalid_json"
    assert (detail.request.model_asked, detail.routing.decision.because) == (None, "undecided")
    no_secret(detail)


@pytest.mark.parametrize(
    ("model", "because"), [("auto", "default"), ("alpha", "model"), ("nobody", "undecided")]
)
async def test_why_a_model_serves_without_a_decision(
    model: str,
    because: str,
    plain: tuple[RunningRouter, list[PlayingBackend]],
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The default serves, or the client has named it; or there is no such model."""
    router, _ = plain
    await router.ask(chat_body("hello", model=model))

    detail = only(router)

    assert (detail.routing.decision.because, detail.routing.model_asked) == (because, model)


async def test_request_whose_body_has_not_come_is_being_read(
    plain: tuple[RunningRouter, list[PlayingBackend]], autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing of it is known but its head."""
    router, _ = plain
    client = await router.connect()
    await client.send(request_of(BODY)[:-5])
    await trio.testing.wait_all_tasks_blocked()

    detail = only(router)

    assert (detail.request.stage, detail.request.model_asked) == ("reading", None)
    client.close()


async def test_graph_under_way_is_told_with_its_steps_and_calls(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What has ended, what goes on, what has yet to begin."""
    scene = await start_graph(nursery, PARALLEL, [(1.0, said())], [SILENT], [(9.0, said())])
    await scene.begin()
    await trio.sleep(2)

    detail = only(scene.router)

    steps, calls = states_of(detail)
    assert steps == {
        "panel": "running",
        "panel[0]/answer": "succeeded",
        "panel[1]/answer": "running",
        "panel[2]/answer": "running",
    }
    assert calls == [
        ("panel[0]/answer", "alpha", "succeeded"),
        ("panel[1]/answer", "beta", "running"),
        ("panel[2]/answer", "gamma", "running"),
    ]
    graph = detail.routing.graph
    assert graph is not None
    assert (graph.name, graph.state, graph.ended_ms) == ("tested", "running", None)
    assert [(each.id, each.type) for each in graph.nodes] == [
        ("panel", "parallel"),
        ("first", "aggregate"),
        ("respond#2", "respond"),
    ]
    [part] = graph.nodes[0].parts
    assert (part.label, [each.id for each in part.nodes]) == ("do", ["answer"])
    assert [(each.endpoint, each.state) for each in graph.calls[1].attempts] == [
        ("backend-1", "running")
    ]
    assert (detail.request.stage, detail.request.decision, detail.attempts) == ("graph", "hard", ())
    [shown] = listed(scene.router).under_way
    assert shown.graph == graph


async def test_graph_that_ended_is_told_with_its_ledger(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What a backend does not say stays unknown, and what was reserved for it counts."""
    scene = await start_graph(
        nursery,
        SEQUENCE,
        [(1.5, said("canary-reply"))],
        [(said(has_usage=False),)],
        limits="limits: {max_tokens: 20000}",
    )
    await scene.ask(body=chat_body("canary-prompt", model="auto"))

    detail = only(scene.router)

    steps, calls = states_of(detail)
    assert steps == {"draft": "succeeded", "final": "succeeded", "respond#2": "succeeded"}
    assert [state for *_, state in calls] == ["succeeded", "succeeded"]
    graph, ledger = detail.routing.graph, detail.routing.ledger
    assert graph is not None
    assert ledger is not None
    assert [each.selected for each in graph.calls] == [False, True]
    assert graph.steps[0].ended_ms == pytest.approx(1500, abs=50)
    first, second = ledger.entries
    assert (first.prompt_tokens, first.completion_tokens) == (3, 4)
    assert (second.prompt_tokens, second.completion_tokens) == (None, None)
    [unknown] = second.reservations
    assert (unknown.settled, unknown.used_tokens) == (True, None)
    assert unknown.tokens is not None
    assert (ledger.max_tokens, ledger.reserved_tokens) == (20000, 0)
    assert ledger.spent_tokens == 7 + unknown.tokens
    assert detail.usage is None
    no_secret(detail)


async def test_client_that_leaves_cancels_what_goes_on(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Steps that have not ended by themselves end with the last of their calls."""
    scene = await start_graph(nursery, PARALLEL, [(said(),)], [SILENT], [failing(503)])
    client = await scene.begin()
    await trio.sleep(1)
    client.close()
    await trio.testing.wait_all_tasks_blocked()

    detail = only(scene.router)

    steps, calls = states_of(detail)
    assert (steps["panel"], steps["panel[1]/answer"]) == ("cancelled", "cancelled")
    assert (steps["panel[0]/answer"], steps["panel[2]/answer"]) == ("succeeded", "failed")
    assert [state for *_, state in calls] == ["succeeded", "cancelled", "failed"]
    graph = detail.routing.graph
    assert graph is not None
    assert {each.path: each.error for each in graph.steps}["panel[2]/answer"] == "call_failed"
    assert [each.ended_ms for each in graph.steps if each.path == "panel"] == [
        pytest.approx(1000, abs=5)
    ]
    assert (detail.request.outcome, detail.request.cause) == ("cancelled", "client_gone")


async def test_tail_call_is_the_routers_once_it_is_handed_out(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its step goes on until its answer has ended."""
    scene = await start_graph(nursery, TAIL, [(1.0, said())], [(5.0, said())])
    await scene.begin()
    await trio.sleep(3)

    during = only(scene.router)
    await trio.sleep(10)
    after = only(scene.router)

    steps, calls = states_of(during)
    assert steps == {"draft": "succeeded", "final": "handed_out"}
    assert calls[1] == ("final", "beta", "running")
    assert during.request.stage == "calling"
    graph = after.routing.graph
    assert graph is not None
    assert states_of(after)[1][1] == ("final", "beta", "succeeded")
    assert graph.steps[1].ended_ms == pytest.approx(6000, abs=50)


async def test_newest_comes_first_and_so_many_are_kept(
    plain: tuple[RunningRouter, list[PlayingBackend]], autojump_clock: trio.testing.MockClock
) -> None:
    """One id may be told twice: the time of the start tells them apart."""
    router, _ = plain
    for number in range(KEPT + 3):
        await router.ask(b"{}", lines=[(b"x-request-id", b"%d" % (number // 2))])

    told = listed(router, 1000)

    assert (len(told.ended), told.kept) == (KEPT, KEPT)
    assert told.ended[0].id == str((KEPT + 2) // 2)
    starts = [each.start_time for each in told.ended]
    assert starts == sorted(starts, reverse=True)
    watch, twin = watch_of(router), told.ended[2]
    assert twin.id == told.ended[1].id
    older, newer = watch.find(twin.id, twin.start_time), watch.find(twin.id, "")
    assert older is not None
    assert newer is not None
    assert (older.request.start_time, newer.request.start_time) == (starts[2], starts[1])
    assert watch.find("0", "") is None
    assert watch.find(NO_SUCH, "") is None
    assert len(listed(router, 5).ended) == 5


async def test_ended_requests_hold_no_configuration(
    plain: tuple[RunningRouter, list[PlayingBackend]], autojump_clock: trio.testing.MockClock
) -> None:
    """Nor prompts and replies: a generation goes, though requests that it served are kept."""
    import gc  # noqa: PLC0415  # of this test alone
    import weakref  # noqa: PLC0415

    router, backends = plain
    await router.ask(chat_body("sum", model="auto"))
    gone = weakref.ref(router.generation)
    router.activate(document_of(model_over(backends)), 2)
    # The connection of the request's listener remembers the generation of its last one.
    await router.ask(chat_body("hello", model="auto"))
    await trio.testing.wait_all_tasks_blocked()
    gc.collect()

    assert gone() is None
    assert len(listed(router).ended) == 2


@pytest.mark.parametrize(
    ("target", "path"),
    [("/v1/x?key=secret", "/v1/x"), ("/" + "é" * 999, "/" + "é" * 127), ("", "")],
)
def test_path_is_told_without_its_query(target: str, path: str) -> None:
    """And cut: it is the client's."""
    assert path_of(target) == path


def no_secret(detail: RequestDetail) -> None:
    """Check that nothing of prompts, replies, queries and addresses is told."""
    text = msgspec.json.encode(detail).decode()
    assert CANARY not in text
    assert ".test" not in text
    assert "127.0.0.1" not in text
