"""Node type `assess`."""

from collections.abc import Mapping

import attrs
import pytest
import trio
import trio.testing

from tests.fakes.graph import ends_of, make_run, problems_of, run_steps, told
from vsr.deadline import Deadline
from vsr.errors import CallFailed, DeadlineExceeded, GraphFailed, UpstreamReset
from vsr.headers import Headers
from vsr.routing.ports import CallAnswer

SHOW = (
    {"id": "shown", "type": "transform", "transformer": "shown", "value": "$judged"},
    {"type": "respond", "from": "$shown"},
)
VERIFIER = {"url": "http://judge/v1", "request": {"text": "$request.question"}}


def assess(**fields: object) -> dict[str, object]:
    """Return the step."""
    return {"id": "judged", "type": "assess", **fields}


@attrs.define
class FakeRuntime:
    """Answers with what it is asked; some keys it does not know."""

    answers: Mapping[str, bytes] | None = None
    asked: list[Mapping[str, bytes]] = attrs.field(factory=list)
    error: Exception | None = None

    async def evaluate(self, bundle: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Answer."""
        self.asked.append(bundle)
        if self.error is not None:
            raise self.error
        return bundle if self.answers is None else self.answers


@attrs.define
class FakeFetch:
    """Answers as it is told, after a while."""

    status: int = 200
    body: bytes = b'{"score": 1}'
    after_s: float = 0.0
    error: Exception | None = None
    asked: list[tuple[str, bytes, int]] = attrs.field(factory=list)

    async def __call__(
        self, url: str, body: bytes, deadline: Deadline, *, limit_bytes: int
    ) -> CallAnswer:
        """Answer."""
        self.asked.append((url, body, limit_bytes))
        with trio.move_on_at(deadline.at):
            await trio.sleep(self.after_s)
            if self.error is not None:
                raise self.error
            return CallAnswer(self.status, Headers(), self.body)
        raise DeadlineExceeded


async def test_runtime_is_asked_once_for_all() -> None:
    """In one bundle; the value has the answers in order."""
    run = make_run()
    run.runtime = runtime = FakeRuntime()
    asks = [{"text": "$request.question"}, "plain"]

    got = await told(run, assess(asks=asks, topic="nli"), *SHOW)

    assert got == "({'text': 'What is it?'}, 'plain')"
    assert [list(each) for each in runtime.asked] == [["nli/0", "nli/1"]]


async def test_unknown_answers_are_null() -> None:
    """Those that are missing or cannot be read."""
    run = make_run()
    run.runtime = FakeRuntime({"assess/1": b"0.5", "assess/2": b"{"})

    assert await told(run, assess(asks=["a", "b", "c"]), *SHOW) == "(None, 0.5, None)"


async def test_nobody_is_asked_without_asks() -> None:
    """The value is empty then."""
    run = make_run()
    run.runtime = runtime = FakeRuntime()

    assert await told(run, assess(asks=[]), *SHOW) == "()"
    assert runtime.asked == []


async def test_without_a_runtime_nothing_is_known() -> None:
    """As of one that knows nothing."""
    assert await told(make_run(), assess(asks=["a", "b"]), *SHOW) == "(None, None)"


async def test_runtime_that_fails_fails_the_step() -> None:
    """Whatever it raised, nothing of it is told."""
    run = make_run()
    run.runtime = FakeRuntime(error=OSError("/secret/socket"))

    with pytest.raises(GraphFailed, match=r"^the model runtime failed$"):
        await run_steps(run, assess(asks=["a"]), *SHOW)


async def test_verifier_is_asked_over_http() -> None:
    """Its value is the object that it answers with."""
    run = make_run()
    run.fetch = fetch = FakeFetch()

    assert await told(run, assess(verifier=VERIFIER), *SHOW) == "{'score': 1}"
    [(url, body, limit_bytes)] = fetch.asked
    assert (url, body) == ("http://judge/v1", b'{"text":"What is it?"}')
    assert limit_bytes == 32 * 1024 * 1024
    assert run.ledger.entries == []


@pytest.mark.parametrize(
    ("fetch", "error"),
    [
        (FakeFetch(status=503), CallFailed),
        (FakeFetch(body=b"<html>"), CallFailed),
        (FakeFetch(error=UpstreamReset()), UpstreamReset),
    ],
)
async def test_verifier_that_fails_fails_the_step(fetch: FakeFetch, error: type[Exception]) -> None:
    """With a failure that the step's `on_error` is about."""
    run = make_run()
    run.fetch = fetch

    with pytest.raises(error):
        await run_steps(run, assess(verifier=VERIFIER), *SHOW)


@pytest.mark.parametrize(
    ("own", "of_run", "ends_at"), [(None, None, 60), ("2s", None, 2), ("20s", 3, 3)]
)
async def test_verifier_has_its_time(
    autojump_clock: trio.testing.MockClock, own: str | None, of_run: float | None, ends_at: float
) -> None:
    """A minute unless it says so, and never more than the request has."""
    run = make_run(timeout_s=of_run)
    run.fetch = FakeFetch(after_s=3600)

    with pytest.raises(DeadlineExceeded):
        await run_steps(run, assess(verifier={**VERIFIER, "timeout": own}), *SHOW)

    assert trio.current_time() == ends_at


@pytest.mark.parametrize("fields", [{}, {"asks": [], "verifier": {"url": "x", "request": {}}}])
def test_one_of_the_two_is_asked(fields: dict[str, object]) -> None:
    """Neither and both are refused."""
    found = problems_of([assess(**fields), *SHOW])

    assert found[0].endswith("cannot be used: give asks or a verifier")


async def test_runtime_is_left_when_the_group_ends(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It is no call, and no ledger has it."""

    class Slow(FakeRuntime):
        async def evaluate(self, bundle: Mapping[str, bytes]) -> Mapping[str, bytes]:
            await trio.sleep(3600)
            return bundle

    run = make_run()
    run.runtime = Slow()
    branches = [[{"type": "assess", "asks": ["a"]}], [{"type": "call", "model": "a"}]]
    step = {"id": "judged", "type": "parallel", "branches": branches, "first_k": 1}

    await run_steps(run, step, {"type": "respond", "from": "done"})

    assert trio.current_time() == 0
    assert ends_of(run) == ["a succeeded"]
