"""A change that was compiled to be looked at, and is not compiled again to be served."""

from collections.abc import Callable

import attrs
import trio

from vsr.config.attempt import Stage
from vsr.config.lifecycle import Compiled, Compiler, Update
from vsr.config.origin import Origin


@attrs.define(eq=False)
class Precompiled:
    """Implements `config.lifecycle.Compiler`: compiles what it does not hold."""

    compiler: Compiler
    _origin: Origin | None = attrs.field(default=None, init=False)
    """That the change will have which it holds: this very object."""
    _held: Compiled | None = attrs.field(default=None, init=False)

    def hold(self, origin: Origin, compiled: Compiled) -> None:
        """Keep what a document has come to, until it is asked for or dropped."""
        self._origin, self._held = origin, compiled

    def drop(self) -> None:
        """Keep it no longer: whatever it was made of may have changed."""
        self._origin = self._held = None

    async def compile(self, update: Update, on_stage: Callable[[Stage], object]) -> Compiled:
        """Return what the document of `update` comes to.

        Raises:
            Refused: with every reason.
        """
        held = self._held
        if held is None or update.origin is not self._origin or update.rereads:
            return await self.compiler.compile(update, on_stage)
        self.drop()
        if held.document.text != update.document.text:
            return await self.compiler.compile(update, on_stage)
        on_stage(Stage.COMPILE)
        # Whoever follows these files finds out itself that one has changed since.
        update.on_included(held.document.included)
        await trio.lowlevel.checkpoint()
        return held
