"""A caller of backends that answers as a test says."""

from collections.abc import Callable, Mapping, Sequence

import attrs
import msgspec
import trio

from vsr.deadline import Deadline
from vsr.errors import DeadlineExceeded
from vsr.headers import Headers
from vsr.routing.outcome import Attempt, TransportFact
from vsr.routing.plan import Call
from vsr.routing.ports import CallAnswer, Journal


@attrs.frozen
class Said:
    """What a backend does with one call."""

    text: str = "fine"
    after_s: float = 0.0
    error: Exception | None = None
    """Raised in the place of an answer."""
    status: int = 200
    body: bytes | None = None
    """In the place of a completion with the text."""
    usage: tuple[int, int] | None = (7, 3)
    """Tokens of prompt and completion; None: the backend does not say."""
    tool: str | None = None
    """Name of a client's tool that is called."""
    retries: Sequence[bool] = ()
    """Attempts that fail before this one: whether each has surely used nothing."""


Script = Callable[[str, int], Said]
"""From a model and the number of the call, from 1, to what its backend does."""


def completion(model: str, said: Said) -> bytes:
    """Return a backend's answer."""
    message: dict[str, object] = {"role": "assistant", "content": said.text}
    if said.tool is not None:
        function = {"name": said.tool, "arguments": "{}"}
        message["tool_calls"] = [{"id": "call-1", "type": "function", "function": function}]
    members: dict[str, object] = {
        "id": "backend",
        "object": "chat.completion",
        "model": f"{model}-backend",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    if said.usage is not None:
        prompt, output = said.usage
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        members["usage"] = dict(zip(names, (prompt, output, prompt + output), strict=True))
    return msgspec.json.encode(members)


@attrs.define(eq=False)
class FakeCaller:
    """Implements `routing.ports.Caller`: waits, asks for its retries, then answers or fails."""

    script: Script | Mapping[str, Said] = attrs.field(factory=dict)
    calls: list[Call] = attrs.field(factory=list)
    """The calls it was asked for, in order."""
    times: list[float] = attrs.field(factory=list)
    """When each of them began."""
    under_way: int = 0
    most_under_way: int = 0
    attempts: int = 0
    """Of all calls together."""

    @property
    def called(self) -> list[str]:
        """Return the models that were called, in order."""
        return [call.model for call in self.calls]

    def asked(self, index: int = -1) -> dict[str, object]:
        """Return the members of one request."""
        members: dict[str, object] = msgspec.json.decode(self.calls[index].body)
        return members

    async def call(
        self, call: Call, deadline: Deadline, *, limit_bytes: int, journal: Journal
    ) -> CallAnswer:
        """Answer `call` after the delay, unless the deadline comes first."""
        del limit_bytes
        self.calls.append(call)
        self.times.append(trio.current_time())
        number = len(self.calls)
        script = self.script
        said = script(call.model, number) if callable(script) else script.get(call.model, Said())
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        try:
            with trio.move_on_at(deadline.at):
                return await self._answer(call, said, journal)
        finally:
            self.under_way -= 1
        raise DeadlineExceeded

    async def _answer(self, call: Call, said: Said, journal: Journal) -> CallAnswer:
        wait_s = said.after_s / (len(said.retries) + 1)
        for is_known_zero in said.retries:
            self._begin(call, journal, is_known_zero=is_known_zero)
            await trio.sleep(wait_s)
            if call.spend is not None and not call.spend.admit_retry(is_known_zero=is_known_zero):
                return CallAnswer(503, Headers(), b"busy")
        self._begin(call, journal, is_known_zero=False)
        await trio.sleep(wait_s)
        if said.error is not None:
            raise said.error
        body = completion(call.model, said) if said.body is None else said.body
        return CallAnswer(said.status, Headers(), body)

    def _begin(self, call: Call, journal: Journal, *, is_known_zero: bool) -> None:
        self.attempts += 1
        fact = TransportFact.CONNECTED if is_known_zero else TransportFact.REQUEST_WRITTEN
        now = trio.current_time()
        journal.attempts.append(Attempt(call.model, "fake", "fake:1", now, fact))
