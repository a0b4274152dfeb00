"""What a client is told of a graph that runs: a short text for each step and call, names only."""

from collections.abc import Callable

import msgspec

from vsr.graph.ledger import LedgerEntry
from vsr.graph.run import GraphRun, Watch
from vsr.graph.timeline import status_of

_MAX_NAME = 96
"""Characters of one name; a line has at most two of them."""


def watch_progress(run: GraphRun, tell: Callable[[str], None]) -> None:
    """Let `tell` have a text for each step and each call of `run` that begins or ends.

    Whoever watches the run already goes on watching it.
    """
    progress = _Progress(tell, run.watch, run.ledger.watch)
    run.watch, run.ledger.watch = progress, progress.note


class _Progress(msgspec.Struct, frozen=True, eq=False):
    """Implements `graph.run.Watch`. All names are the configuration's; no value is ever shown."""

    tell: Callable[[str], None]
    steps: Watch | None
    calls: Callable[[LedgerEntry], None] | None

    def began(self, path: str, kind: str) -> None:
        """Tell that a step begins."""
        if self.steps is not None:
            self.steps.began(path, kind)
        self.tell(f"step={_name(path)} type={_name(kind)} status=started")

    def ended(self, path: str, value: object) -> None:
        """Tell how it has ended."""
        if self.steps is not None:
            self.steps.ended(path, value)
        self.tell(f"step={_name(path)} status={status_of(value)}")

    def note(self, entry: LedgerEntry) -> None:
        """Tell that a call was started, or how it has ended."""
        if self.calls is not None:
            self.calls(entry)
        outcome = entry.outcome
        word = "started" if outcome is None else str(outcome.terminal)
        cause = "" if outcome is None or outcome.cause is None else f" cause={outcome.cause}"
        called = f"step={_name(entry.step)} call={entry.ordinal} model={_name(entry.model)}"
        self.tell(f"{called} status={word}{cause}")


def _name(text: str) -> str:
    """Return a name as one word of bounded length."""
    word = "".join(each if each.isprintable() and each != " " else "_" for each in text)
    # The end of a long path tells more than its beginning.
    return word if len(word) <= _MAX_NAME else f"..{word[2 - _MAX_NAME :]}"
