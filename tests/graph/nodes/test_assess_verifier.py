"""Node type `assess`: a verifier over HTTP."""

import attrs
import pytest
import trio

from tests.fakes.graph import FakePrompt, FakeTasks
from vsr.deadline import NO_DEADLINE, Deadline
from vsr.errors import CallFailed, GraphFailed, VsrError
from vsr.graph.budget import Budget
from vsr.graph.context import NodeContext
from vsr.graph.ending import Ending
from vsr.graph.ledger import Ledger
from vsr.graph.nodes.assess import AssessNode, Verifier
from vsr.graph.run import GraphRun
from vsr.graph.scope import Scope
from vsr.headers import Headers
from vsr.routing.ports import CallAnswer


@attrs.define(eq=False)
class FakeFetch:
    """Answers as told, and notes what it is asked."""

    body: bytes = b"{}"
    status: int = 200
    asked: list[tuple[str, bytes, float, int]] = attrs.field(factory=list)

    async def __call__(
        self, url: str, body: bytes, deadline: Deadline, *, limit_bytes: int
    ) -> CallAnswer:
        """Answer."""
        await trio.lowlevel.checkpoint()
        self.asked.append((url, body, deadline.at - trio.current_time(), limit_bytes))
        return CallAnswer(self.status, Headers(), self.body)


async def assess(verifier: Verifier, fetch: FakeFetch, deadline: Deadline = NO_DEADLINE) -> object:
    """Return what the step comes to."""
    run = GraphRun(FakeTasks(), deadline, Budget(), Ledger(), FakePrompt(), fetch=fetch)
    return await AssessNode(verifier=verifier).run(NodeContext(run, Scope({}), Ending()))


@pytest.mark.parametrize(
    ("url", "path", "asked"),
    [
        ("http://v:8000", "/verify", "http://v:8000/verify"),
        ("http://v:8000/", "/verify", "http://v:8000/verify"),
        ("http://v/base", "/verify", "http://v/base/verify"),
        ("http://v/judge/", "", "http://v/judge/"),
    ],
)
async def test_verifier_is_asked_at_its_path(
    url: str, path: str, asked: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Behind the URL's own one; its value is the object that it answers with."""
    fetch = FakeFetch(b'{"confidence":0.5}')

    verdict = await assess(Verifier(url, {"answer": "a"}, path, max_response_bytes=9), fetch)

    assert verdict == {"confidence": 0.5}
    [(found, body, _, limit_bytes)] = fetch.asked
    assert (found, body, limit_bytes) == (asked, b'{"answer":"a"}', 9)


@pytest.mark.parametrize(
    ("timeout_s", "left_s", "limit_s"), [(None, 1000, 60), (5, 1000, 5), (5, 2, 2)]
)
async def test_question_has_a_timeout_within_the_run_s(
    timeout_s: float | None,
    left_s: float,
    limit_s: float,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A minute if nothing is said."""
    fetch = FakeFetch()
    deadline = Deadline(trio.current_time() + left_s)

    await assess(Verifier("http://v", {}, timeout=timeout_s), fetch, deadline)

    assert fetch.asked[0][2] == pytest.approx(limit_s)


@pytest.mark.parametrize(
    ("fetch", "error", "text"),
    [
        (FakeFetch(b"{}", 500), CallFailed, "the verifier answered with status 500"),
        (FakeFetch(b"{}", 201), CallFailed, "the verifier answered with status 201"),
        (FakeFetch(b"[]"), CallFailed, "the verifier's answer is no JSON object"),
        (FakeFetch(b"{secret"), CallFailed, "the verifier's answer is no JSON object"),
    ],
)
async def test_verifier_that_gives_no_verdict_fails_the_step(
    fetch: FakeFetch, error: type[VsrError], text: str
) -> None:
    """Nothing of its answer is shown."""
    with pytest.raises(error) as failed:
        await assess(Verifier("http://v", {}), fetch)

    assert str(failed.value) == text


@pytest.mark.parametrize("url", [None, ""])
async def test_without_a_verifier_the_step_fails(url: str | None) -> None:
    """A graph may leave it to its parameters whether there is one."""
    fetch = FakeFetch()

    with pytest.raises(GraphFailed, match="there is no verifier to ask"):
        await assess(Verifier(url, {}), fetch)

    assert fetch.asked == []
