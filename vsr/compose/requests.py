"""Operators' questions about requests: answered by one process, or asked of all workers."""

from collections.abc import Awaitable, Callable

import attrs
import msgspec

from vsr.gateway.requests import Requests
from vsr.routing.request_views import RequestDetail, RequestList, Watched, chosen, merged
from vsr.workers.asking import Answers

LIST, FIND = "requests", "request"
"""Topics of questions to workers."""
Ask = Callable[[str, bytes], Awaitable[Answers]]


class ListRequests(msgspec.Struct, frozen=True):
    """The question of topic `LIST`; the answer is a `RequestList`."""

    limit: int


class FindRequest(msgspec.Struct, frozen=True):
    """The question of topic `FIND`; the answer is a `RequestDetail` or nothing."""

    id: str
    start_time: str


_READ_LIST = msgspec.msgpack.Decoder(RequestList)
_READ_DETAIL = msgspec.msgpack.Decoder(RequestDetail | None)


def watch_of(requests: Requests) -> Watched:
    """Return what can be asked about the requests of this process; loaded for who asks."""
    from vsr.gateway.request_views import RequestWatch  # noqa: PLC0415

    return RequestWatch(requests)


def answer(requests: Requests, topic: str, question: bytes) -> bytes:
    """Answer a question as a worker does.

    Raises:
        ValueError: it is none about requests.
    """
    watch = watch_of(requests)
    if topic == LIST:
        limit = msgspec.msgpack.decode(question, type=ListRequests).limit
        return msgspec.msgpack.encode(watch.list(limit))
    if topic == FIND:
        find = msgspec.msgpack.decode(question, type=FindRequest)
        return msgspec.msgpack.encode(watch.find(find.id, find.start_time))
    raise ValueError(f"nothing is known of {topic}")


@attrs.frozen
class RequestsOfWorkers:
    """Asks all workers of a supervisor; those that do not answer in time are named."""

    ask: Ask

    async def requests(self, limit: int) -> RequestList:
        """Return their requests as one list; see `admin.ports.Serving`."""
        answers = await self.ask(LIST, msgspec.msgpack.encode(ListRequests(limit)))
        told = [(worker, _READ_LIST.decode(each)) for worker, each in answers.told.items()]
        return merged(told, limit, answers.missing)

    async def request(self, request_id: str, start_time: str) -> RequestDetail | None:
        """Return the newest that any of them has; see `admin.ports.Serving`."""
        question = msgspec.msgpack.encode(FindRequest(request_id, start_time))
        answers = await self.ask(FIND, question)
        return chosen((worker, _READ_DETAIL.decode(it)) for worker, it in answers.told.items())
