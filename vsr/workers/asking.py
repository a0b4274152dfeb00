"""Questions to all workers at once: whoever does not answer in time is named."""

import attrs
import msgspec
import trio

from vsr.workers.crew import Crew, Member
from vsr.workers.fleet import Phase
from vsr.workers.messages import Answered, Ask
from vsr.workers.outbox import Outbox

ASK_S = 2.0
"""What workers get to answer: a person waits, or a scrape that has its own limit."""


class Answers(msgspec.Struct, frozen=True):
    """What workers have said."""

    told: dict[int, bytes]
    """By worker, in order."""
    missing: tuple[int, ...] = ()
    """Workers that have said nothing: that do not serve, have failed at it, or take too long."""


@attrs.define(eq=False)
class _Question:
    """One question that is open."""

    waiting: set[int]
    """Serial numbers of whom it waits for."""
    told: dict[int, bytes] = attrs.field(factory=dict, init=False)


@attrs.define(eq=False)
class Asking:
    """Asks the processes of a crew, several questions at a time if need be."""

    crew: Crew
    _asked: int = attrs.field(default=0, init=False)
    _open: dict[int, _Question] = attrs.field(factory=dict, init=False)
    _kept: dict[str, bytes] = attrs.field(factory=dict, init=False)
    """By topic: what workers to come have to know before they serve."""

    async def ask(self, topic: str, question: bytes = b"") -> Answers:
        """Return what those say that serve now."""
        serving = [each for each in self.crew.members.values() if each.slot.phase is Phase.SERVING]
        return await self._gather(topic, question, serving)

    async def impart(self, topic: str, question: bytes) -> Answers:
        """Let all know something, those that begin later too, in place of what was said before.

        Two of them may arrive in any order: what is said must tell which one is newer.
        """
        self._kept[topic] = question
        return await self._gather(topic, question, list(self.crew.members.values()))

    def brief(self, outbox: Outbox) -> None:
        """Tell a worker that begins what it has to know; `Start` is to follow."""
        for topic, question in self._kept.items():
            outbox.put(Ask(0, topic, question))

    def heed(self, member: Member, answered: Answered) -> None:
        """Take what a worker says."""
        question, serial = self._open.get(answered.number), member.slot.serial
        if question is None or serial not in question.waiting:
            return  # it comes too late
        question.waiting.remove(serial)
        if answered.answer is not None:
            question.told[member.slot.worker] = answered.answer

    async def _gather(self, topic: str, question: bytes, asked: list[Member]) -> Answers:
        self._asked += 1
        number = self._asked
        one = self._open[number] = _Question({each.slot.serial for each in asked})
        for member in asked:
            member.outbox.put(Ask(number, topic, question))
        try:
            with trio.move_on_after(ASK_S):
                await self.crew.until(lambda: not one.waiting & set(self.crew.members))
        finally:
            del self._open[number]
        slots = self.crew.fleet.slots
        return Answers(
            {slot.worker: one.told[slot.worker] for slot in slots if slot.worker in one.told},
            tuple(slot.worker for slot in slots if slot.worker not in one.told),
        )
