"""Changes of the configuration: one after the other, each served whole or not at all."""

from collections.abc import Callable
from functools import partial

import attrs
import msgspec
import pytest
import trio
import trio.testing

from vsr.config.attempt import Attempt, AttemptStatus, Code, Reason, Stage
from vsr.config.history import Document
from vsr.config.lifecycle import Compiled, Lifecycle, Refused, Update
from vsr.config.origin import Origin
from vsr.errors import ConfigRejected, NoHealthyEndpoint, Problem, RoutingFailed
from vsr.resources.snapshot import Snapshot

FILE = Origin("file")


@attrs.define(eq=False)
class World:
    """Implements all that a lifecycle works with, and fails where it is told to."""

    compile_s: float = 1.0
    warm_s: float = 2.0
    commit_s: float = 0.0
    faults: dict[str, Exception] = attrs.field(factory=dict)
    """By what is asked: `compile`, `prepare` or `commit`."""
    unfit: tuple[Reason, ...] = ()
    log: list[str] = attrs.field(factory=list)
    serving: int = 0
    alive: set[int] = attrs.field(factory=set)
    """Versions that are built and not given up."""
    recorded: list[tuple[int, bytes | None]] = attrs.field(factory=list)

    async def compile(self, update: Update, on_stage: Callable[[Stage], object]) -> Compiled:
        """Take its time."""
        on_stage(Stage.COMPILE)
        await trio.sleep(self.compile_s)
        self._fail("compile")
        return Compiled(Snapshot("whole-" + update.document.text.decode()), update.document)

    def check(self, snapshot: Snapshot) -> tuple[Reason, ...]:
        """Refuse what it is told to refuse."""
        del snapshot
        return self.unfit

    async def prepare(self, snapshot: Snapshot, version: int) -> "Built":
        """Take its time; what is half built is given up."""
        self.log.append(f"prepare {snapshot.hash} {version}")
        await trio.sleep(self.warm_s)
        self._fail("prepare")
        self.alive.add(version)
        return Built(self, version)

    async def record(self, document: Document | None, active: object) -> None:
        """Note it."""
        await trio.lowlevel.checkpoint()
        self.recorded.append((self.serving, None if document is None else document.text))
        del active

    def _fail(self, what: str) -> None:
        if what in self.faults:
            raise self.faults.pop(what)


@attrs.define(eq=False)
class Built:
    """One version that may serve."""

    world: World
    version: int
    reused: tuple[str, ...] = ("upstream",)

    async def commit(self) -> None:
        """Serve it."""
        await trio.sleep(self.world.commit_s)
        self.world._fail("commit")
        self.world.alive.discard(self.world.serving)
        self.world.serving = self.version

    async def discard(self) -> None:
        """Give it up."""
        await trio.lowlevel.checkpoint()
        self.world.alive.discard(self.version)


def update(text: str, **more: object) -> Update:
    """Return a change to a document that says this."""
    return Update(Document(text.encode()), FILE, **more)  # type: ignore[arg-type]  # passed on


@pytest.fixture
def world() -> World:
    """Return one."""
    return World()


@pytest.fixture
async def lifecycle(world: World, nursery: trio.Nursery) -> Lifecycle:
    """Return a running one that serves version 1."""
    lifecycle = Lifecycle(world, world, world, trio.current_time)
    lifecycle.adopt("first", Origin("startup"), 1)
    world.serving = 1
    world.alive.add(1)
    await nursery.start(lifecycle.run)
    return lifecycle


def last(lifecycle: Lifecycle) -> Attempt:
    """Return the latest attempt."""
    assert lifecycle.status.latest is not None
    return lifecycle.status.latest


async def test_change_is_served_as_the_next_version(
    lifecycle: Lifecycle, world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """And recorded once it is, with the hash that covers all of it."""
    attempt = await lifecycle.submit(update("a")).wait()

    assert (attempt.status, attempt.version, attempt.stage) == ("active", 2, "activate")
    assert (attempt.document_hash, attempt.reused) == ("whole-a", ("upstream",))
    assert attempt.finished_at == attempt.started_at + 3
    assert lifecycle.status.active is not None
    assert (lifecycle.status.active.version, lifecycle.status.active.hash) == (2, "whole-a")
    assert (world.serving, world.alive, world.recorded) == (2, {2}, [(2, b"a")])


async def test_changes_take_turns_in_order(
    lifecycle: Lifecycle, world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Each begins when the one before has ended."""
    tickets = [lifecycle.submit(update(text)) for text in "abc"]
    assert lifecycle.is_busy

    ended = [await ticket.wait() for ticket in tickets]

    assert [attempt.version for attempt in ended] == [2, 3, 4]
    assert [attempt.started_at - ended[0].started_at for attempt in ended] == [0, 3, 6]
    assert world.log == ["prepare whole-a 2", "prepare whole-b 3", "prepare whole-c 4"]
    assert not lifecycle.is_busy


async def _run_in_scope(
    lifecycle: Lifecycle, *, task_status: trio.TaskStatus[trio.CancelScope]
) -> None:
    """Run it in a scope that ends it."""
    async with trio.open_nursery() as tasks:
        await tasks.start(lifecycle.run)
        task_status.started(tasks.cancel_scope)


STOP = (Reason(Stage.PARSE, Code.INVALID_DOCUMENT, "no YAML", "x"),)


@pytest.mark.parametrize(
    ("where", "error", "stage", "code"),
    [
        ("compile", Refused(Stage.PARSE, STOP), Stage.PARSE, Code.INVALID_DOCUMENT),
        ("prepare", ConfigRejected([Problem("x", "no YAML")]), Stage.WARM, Code.BUILD_FAILED),
        ("prepare", NoHealthyEndpoint(), Stage.WARM, Code.WARMUP_FAILED),
        ("commit", RoutingFailed(), Stage.ACTIVATE, Code.ACTIVATION_FAILED),
    ],
)
async def test_refused_change_leaves_everything_as_it_was(
    where: str,
    error: Exception,
    stage: Stage,
    code: Code,
    lifecycle: Lifecycle,
    world: World,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """No version is used up, nothing stays built, and the refusal stays told."""
    world.faults[where] = error

    refused = await lifecycle.submit(update("bad")).wait()

    assert (refused.status, refused.stage, refused.version) == ("failed", stage, 0)
    assert [reason.code for reason in refused.reasons] == [code]
    assert refused.text == (
        "x: no YAML" if isinstance(error, Refused | ConfigRejected) else str(error)
    )
    assert (world.serving, world.alive, world.recorded) == (1, {1}, [])
    assert lifecycle.status.active is not None
    assert lifecycle.status.active.version == 1
    good = await lifecycle.submit(update("good")).wait()
    assert good.version == 2
    assert lifecycle.status.last_rejection == refused


async def test_change_that_the_process_cannot_take_is_refused_before_anything_is_built(
    lifecycle: Lifecycle, world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """As one that needs a restart."""
    world.unfit = (Reason(Stage.VALIDATE, Code.RESTART_REQUIRED, "restart it", "global"),)

    refused = await lifecycle.submit(update("bad")).wait()

    assert (refused.status, refused.stage, refused.reasons) == ("failed", "validate", world.unfit)
    assert world.log == []


@pytest.mark.parametrize("newer_at_s", [-1, 0.5, 1.5, 2.5])
async def test_newer_document_takes_the_place_of_one_that_does_not_serve_yet(
    newer_at_s: float, lifecycle: Lifecycle, world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """It is neither served nor refused, and what was built for it is given up."""
    newer_at = trio.current_time() + newer_at_s

    def is_newest() -> bool:
        return trio.current_time() <= newer_at

    ended = await lifecycle.submit(update("old", is_newest=is_newest)).wait()

    assert ended.status is AttemptStatus.SUPERSEDED
    assert ended.reasons == ()
    assert (world.serving, world.alive) == (1, {1})
    assert lifecycle.status.last_rejection is None
    assert bool(world.log) is (newer_at_s > 1)


async def test_source_that_never_rests_is_heard_all_the_same(
    lifecycle: Lifecycle, world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Every document is old by the time that it is compiled; after a while one serves."""
    world.compile_s = world.warm_s = 0.3
    tickets = []
    for number in range(40):
        written = trio.current_time()

        def is_newest(until: float = written + 0.1) -> bool:
            return trio.current_time() < until

        tickets.append(lifecycle.submit(update(str(number), is_newest=is_newest)))
        await trio.sleep(0.1)
    ended = [await ticket.wait() for ticket in tickets]

    served = [attempt for attempt in ended if attempt.status is AttemptStatus.ACTIVE]
    assert len(served) >= 2
    assert len(served) < len(ended) / 2
    assert {attempt.status for attempt in ended} == {"active", "superseded"}


async def test_whoever_asked_may_leave(
    lifecycle: Lifecycle, world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """The change goes on."""
    with trio.move_on_after(1.5):
        await lifecycle.submit(update("a")).wait()
    await trio.sleep(10)

    assert world.serving == 2


async def test_status_tells_the_stage_while_a_change_is_in_progress(
    lifecycle: Lifecycle, autojump_clock: trio.testing.MockClock
) -> None:
    """And reading it never waits."""
    ticket = lifecycle.submit(update("a"))
    seen = []
    for _ in range(3):
        await trio.sleep(0.9)
        seen.append((last(lifecycle).status, last(lifecycle).stage))
    await ticket.wait()

    assert seen == [("preparing", "compile"), ("preparing", "warm"), ("preparing", "warm")]


@pytest.mark.parametrize("at_s", [0.5, 1.5])
async def test_end_of_the_process_refuses_what_has_not_ended(
    at_s: float, world: World, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The one in progress as cancelled, those that wait as too late; nothing stays built."""
    lifecycle = Lifecycle(world, world, world, trio.current_time)
    scope = await nursery.start(_run_in_scope, lifecycle)
    tickets = [lifecycle.submit(update(text)) for text in "ab"]
    await trio.sleep(at_s)
    scope.cancel()

    first, second = [await ticket.wait() for ticket in tickets]

    assert [reason.code for reason in first.reasons] == [Code.CANCELED]
    assert [reason.code for reason in second.reasons] == [Code.SHUTTING_DOWN]
    assert lifecycle.is_shutting_down
    assert (world.serving, world.alive) == (0, set())


async def test_change_that_serves_is_recorded_though_the_process_ends(
    world: World, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Else it would be served again under its number after the start."""
    lifecycle = Lifecycle(world, world, world, trio.current_time)
    scope = await nursery.start(_run_in_scope, lifecycle)

    def stop(attempt: Attempt) -> None:
        if attempt.status is AttemptStatus.ACTIVE:
            scope.cancel()

    lifecycle.observers.append(stop)
    attempt = await lifecycle.submit(update("a")).wait()

    assert attempt.status is AttemptStatus.ACTIVE
    assert world.recorded == [(1, b"a")]


async def test_refusal_beside_a_change_leaves_it_alone(
    lifecycle: Lifecycle, world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Each ends as itself."""
    api = Origin("api", "admin")
    ended: dict[int, Attempt] = {}
    lifecycle.observers.append(lambda each: ended.update({each.attempt: each}))
    ticket = lifecycle.submit(msgspec.structs.replace(update("a"), origin=api))
    await trio.sleep(0.5)

    refused = lifecycle.reject("", FILE, STOP)
    served = await ticket.wait()

    assert (refused.status, refused.origin) == ("failed", FILE)
    assert (served.status, served.origin, served.reasons) == ("active", api, ())
    assert served.attempt != refused.attempt
    assert {ended[each.attempt] == each for each in (served, refused)} == {True}
    assert lifecycle.status.active is not None
    assert lifecycle.status.active.origin == api


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("compile", Code.INVALID_RESOURCE),
        ("prepare", Code.BUILD_FAILED),
        ("commit", Code.ACTIVATION_FAILED),
    ],
)
async def test_fault_of_the_router_itself_is_a_refusal(
    where: str,
    code: Code,
    lifecycle: Lifecycle,
    world: World,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What serves serves on, the log has the traceback, and the next change is taken."""
    world.faults[where] = RuntimeError("a bug")

    refused = await lifecycle.submit(update("a")).wait()

    assert (refused.status, refused.reasons[0].code) == ("failed", code)
    assert "a bug" not in refused.text
    assert "RuntimeError: a bug" in caplog.text
    assert (world.serving, world.alive) == (1, {1})
    assert (await lifecycle.submit(update("b")).wait()).version == 2


def test_file_that_cannot_be_read_is_a_refusal(world: World) -> None:
    """Without a document."""
    lifecycle = Lifecycle(world, world, world, float)

    attempt = lifecycle.reject("", FILE, STOP)

    assert (attempt.status, attempt.stage) == ("failed", "parse")
    assert lifecycle.status.last_rejection == attempt


async def test_observers_hear_of_every_attempt(
    lifecycle: Lifecycle, world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Of its begin, its stages and its end."""
    heard: list[tuple[int, str, str]] = []
    lifecycle.observers.append(
        partial(lambda it, each: it.append((each.attempt, each.status, each.stage)), heard)
    )
    world.faults["prepare"] = NoHealthyEndpoint()

    await lifecycle.submit(update("a")).wait()

    assert heard[0] == (2, "preparing", "parse")
    assert heard[-1] == (2, "failed", "warm")
    assert [status for _, status, _ in heard].count("failed") == 1
