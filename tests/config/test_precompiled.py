"""What was compiled to be looked at, and is served."""

from collections.abc import Callable, Mapping

import attrs
import pytest
import trio

from vsr.config.attempt import Stage
from vsr.config.history import Document
from vsr.config.lifecycle import Compiled, Update
from vsr.config.origin import Origin
from vsr.config.precompiled import Precompiled
from vsr.resources.snapshot import Snapshot

DOCUMENT = Document(b"text", {"g.yaml": b"graph"})
LOOKED_AT = Compiled(Snapshot("looked at"), DOCUMENT)
ORIGIN = Origin("api", "admin", "r-1")


@attrs.define
class FakeCompiler:
    """Compiles everything to the same."""

    asked: list[Update] = attrs.field(factory=list)

    async def compile(self, update: Update, on_stage: Callable[[Stage], object]) -> Compiled:
        """Note it."""
        await trio.lowlevel.checkpoint()
        on_stage(Stage.COMPILE)
        self.asked.append(update)
        return Compiled(Snapshot("compiled"), update.document)


@pytest.fixture
def precompiled() -> Precompiled:
    """Return one that holds a change."""
    precompiled = Precompiled(FakeCompiler())
    precompiled.hold(ORIGIN, LOOKED_AT)
    return precompiled


async def compiled(precompiled: Precompiled, update: Update) -> str:
    """Return what an update comes to."""
    stages: list[Stage] = []
    result = await precompiled.compile(update, stages.append)
    assert stages == [Stage.COMPILE]
    return result.snapshot.hash


async def test_change_that_is_held_is_not_compiled_again(precompiled: Precompiled) -> None:
    """Once; whoever follows its files hears of them."""
    told: list[Mapping[str, bytes | None]] = []
    update = Update(Document(b"text"), ORIGIN, on_included=told.append)

    assert await compiled(precompiled, update) == "looked at"
    assert told == [{"g.yaml": b"graph"}]
    assert await compiled(precompiled, update) == "compiled"


@pytest.mark.parametrize(
    "update",
    [
        Update(Document(b"text"), Origin("api", "admin", "r-1")),
        Update(Document(b"other"), ORIGIN),
        Update(Document(b"text"), ORIGIN, rereads=True),
    ],
    ids=["of somebody else", "another text", "files that are to be read anew"],
)
async def test_anything_else_is_compiled(precompiled: Precompiled, update: Update) -> None:
    """As if nothing were held."""
    assert await compiled(precompiled, update) == "compiled"


async def test_change_that_is_dropped_is_compiled(precompiled: Precompiled) -> None:
    """It may be out of date."""
    precompiled.drop()

    assert await compiled(precompiled, Update(Document(b"text"), ORIGIN)) == "compiled"
