"""Endpoints that an operator takes out of rotation, and puts back."""

import attrs
import pytest
import trio
import trio.testing

from tests.fakes.configuration import Desk
from vsr.admin.answer import Refusal
from vsr.admin.quarantine import Quarantine, QuarantineChange, Quarantined
from vsr.admin.views import QuarantineView
from vsr.resources.cluster import Cluster, Endpoint
from vsr.resources.snapshot import Snapshot

BOTH = Snapshot("1", clusters=(Cluster("m", (Endpoint("a", "h", 1), Endpoint("b", "h", 2)), "m"),))
ONE = Snapshot("2", clusters=(Cluster("m", (Endpoint("b", "h", 2),), "m"),))
PATH = "/api/v1/backends/small/{}/quarantine"


@attrs.define(eq=False)
class Served:
    """A quarantine and what heeds it."""

    snapshot: Snapshot | None = BOTH
    now: float = 10.0
    missing: tuple[int, ...] = ()
    takes_s: list[float] = attrs.field(factory=list)
    """What heeding takes, change by change."""
    spread: list[Quarantined] = attrs.field(factory=list)
    quarantine: Quarantine = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.quarantine = Quarantine(lambda: self.snapshot, self.heed, lambda: self.now)

    async def heed(self, quarantined: Quarantined) -> tuple[int, ...]:
        """Note what is let known."""
        await trio.sleep(self.takes_s.pop(0) if self.takes_s else 0)
        self.spread.append(quarantined)
        return self.missing


async def test_all_that_is_out_is_let_known_with_every_change() -> None:
    """In numbered changes; once more is as good, and keeps the time of the first."""
    served = Served(missing=(2,))
    quarantine = served.quarantine

    taken = await quarantine.take_out("m", "a")
    served.now = 20.0
    await quarantine.take_out("m", "a")
    entries = quarantine.entries
    back = await quarantine.put_back("m", "a")
    await quarantine.put_back("m", "a")

    assert taken == QuarantineChange("m", "a", quarantined=True, left=1, missing=(2,))
    assert entries == (QuarantineView("m", "a", 10.0, served=True),)
    assert back == QuarantineChange("m", "a", quarantined=False, left=2, missing=(2,))
    assert served.spread == [
        Quarantined(1, (("m", "a"),)),
        Quarantined(2, (("m", "a"),)),
        Quarantined(3),
        Quarantined(4),
    ]
    assert quarantine.entries == ()


@pytest.mark.parametrize(("model", "endpoint"), [("m", "c"), ("n", "a"), ("", "")])
async def test_unknown_endpoint_is_refused(model: str, endpoint: str) -> None:
    """Nobody hears of it, either way."""
    served = Served()

    for change in (served.quarantine.take_out, served.quarantine.put_back):
        with pytest.raises(Refusal, match="no such endpoint") as refused:
            await change(model, endpoint)
        assert refused.value.status == 404

    assert served.spread == []


async def test_last_endpoint_stays_unless_that_is_wanted() -> None:
    """It is a model that answers 503 then."""
    served = Served()
    await served.quarantine.take_out("m", "a")

    with pytest.raises(Refusal) as refused:
        await served.quarantine.take_out("m", "b")
    change = await served.quarantine.take_out("m", "b", allow_empty=True)
    again = await served.quarantine.take_out("m", "b")

    assert (refused.value.status, refused.value.code) == (409, "LAST_ENDPOINT")
    assert (change.quarantined, change.left) == (True, 0)
    assert again.left == 0


async def test_endpoint_that_is_gone_stays_out_until_it_is_put_back() -> None:
    """It may come back by the next document; another one is the last of its model then."""
    served = Served()
    await served.quarantine.take_out("m", "a")

    served.snapshot = ONE
    entries = served.quarantine.entries
    with pytest.raises(Refusal, match="last endpoint"):
        await served.quarantine.take_out("m", "b")
    await served.quarantine.put_back("m", "a")

    assert [each.served for each in entries] == [False]
    assert served.spread[-1].names == ()
    with pytest.raises(Refusal, match="no such endpoint"):
        await served.quarantine.put_back("m", "a")


async def test_two_changes_at_a_time_are_told_apart(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Each answer is about its own change, whichever is heeded first."""
    served = Served(takes_s=[2.0, 1.0])
    found: list[QuarantineChange] = []

    async def take_out() -> None:
        found.append(await served.quarantine.take_out("m", "a"))

    async with trio.open_nursery() as tasks:
        tasks.start_soon(take_out)
        await trio.sleep(0.5)
        back = await served.quarantine.put_back("m", "a")

    assert [back.quarantined, found[0].quarantined] == [False, True]
    assert [each.change for each in served.spread] == [2, 1]
    assert served.quarantine.entries == ()


async def test_endpoint_is_named_in_the_path_as_it_is_called() -> None:
    """Escapes stand for what they mean; the audit has the path, cut where somebody made it long."""
    desk = Desk()

    taken = await desk.ask("POST", PATH.format("a%2Fb%20c"))
    listed = (await desk.ask("GET", "/api/v1/backends")).json()
    back = await desk.ask("DELETE", PATH.format("a%2Fb%20c"))
    await desk.ask("POST", PATH.format("x" * 1000))
    entries = [each for each in desk.audit.page({}).entries if each.action.startswith("backend")]

    assert taken.json() == {
        "model": "small",
        "endpoint": "a/b c",
        "quarantined": True,
        "left": 1,
        "missing": [],
    }
    [entry] = listed["quarantine"]
    assert (entry["model"], entry["endpoint"], entry["served"]) == ("small", "a/b c", True)
    assert (taken.status, back.status, back.json()["quarantined"]) == (200, 200, False)
    assert [(each.action, each.status, len(each.path)) for each in entries] == [
        ("backend.quarantine", 200, len(PATH.format("a%2Fb%20c"))),
        ("backend.release", 200, len(PATH.format("a%2Fb%20c"))),
        ("backend.quarantine", 404, 256),
    ]


async def test_worker_that_has_not_heeded_it_makes_it_a_promise() -> None:
    """202, with its number."""
    desk = Desk()
    desk.serving.missing = (2,)

    got = await desk.ask("POST", PATH.format("one"))

    assert (got.status, got.json()["missing"]) == (202, [2])


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 409), ("?allow_empty=false", 409), ("?allow_empty=true", 200), ("?allow_empty=1", 400)],
)
async def test_model_is_emptied_by_whoever_says_so(query: str, status: int) -> None:
    """In so many words."""
    desk = Desk()
    await desk.ask("POST", PATH.format("one"))

    got = await desk.ask("POST", PATH.format("a%2Fb%20c") + query)

    assert got.status == status
