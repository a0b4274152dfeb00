"""The demo models on real sockets, with the official client."""

from collections.abc import Awaitable, Callable

import openai
import pytest
import trio

from tests.demo.raw_client import AnswerEnd, ask, chat_body
from tests.fakes.backend import BACKEND_HOST, start_backend
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.demo.server import CallEnd, DemoModel
from vsr.network.epoll import EpollNetwork

# The official client leaves its generators behind when a stream has said that it is done.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
PATIENCE_S = 10


async def _with_client(
    script: Script, act: Callable[[openai.AsyncOpenAI], Awaitable[None]]
) -> DemoModel:
    """Run `act` with the official client against a backend; afterwards nothing may be open."""
    network = EpollNetwork()
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            await nursery.start(network.run)
            backend = await start_backend(nursery, network, script)
            url = f"http://{BACKEND_HOST}:{backend.port}/v1"
            http = openai.DefaultAsyncHttpxClient(trust_env=False)
            async with openai.AsyncOpenAI(
                base_url=url, api_key="k", max_retries=0, http_client=http
            ) as client:
                await act(client)
            nursery.cancel_scope.cancel()
    assert (backend.open_connections, network.open_sockets) == (0, 0)
    return backend


async def test_official_client_takes_every_answer() -> None:
    """Chat, stream with usage, completion, embedding and models."""
    got: dict[str, object] = {}

    async def act(client: openai.AsyncOpenAI) -> None:
        chat = client.chat.completions
        completion = await chat.create(model="x", messages=[{"role": "user", "content": "Hi é"}])
        got["chat"] = completion.choices[0].message.content
        stream = await chat.create(
            model="x",
            messages=[{"role": "user", "content": "Hi é"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        got["stream"] = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        got["usage"] = chunks[-1].usage and chunks[-1].usage.completion_tokens
        text = await client.completions.create(model="x", prompt="Hi é")
        got["completion"] = text.choices[0].text
        vectors = await client.embeddings.create(model="x", input=["one", "two"])
        got["vectors"] = [len(row.embedding) for row in vectors.data]
        got["models"] = [model.id async for model in client.models.list()]

    backend = await _with_client(Script(model="m1"), act)

    assert got == {
        "chat": "m1 says: Hi é",
        "stream": "m1 says: Hi é",
        "usage": 4,
        "completion": "m1 says: Hi é",
        "vectors": [8, 8],
        "models": ["m1"],
    }
    assert backend.accepted_connections == 1
    assert all(call.end is CallEnd.COMPLETED for call in backend.calls)


async def test_official_client_raises_its_typed_error() -> None:
    """The error body is the form that the client reads."""
    messages: list[str] = []

    async def act(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.RateLimitError) as caught:
            await client.models.list(extra_headers={"x-demo-status": "429"})
        assert isinstance(caught.value.body, dict)
        messages.append(caught.value.body["type"])

    await _with_client(Script(), act)

    assert messages == ["rate_limit_exceeded"]


async def test_official_client_that_stops_reading_ends_the_call() -> None:
    """Closing a stream in the middle is seen while the server waits for its next piece."""

    async def act(client: openai.AsyncOpenAI) -> None:
        stream = await client.chat.completions.create(
            model="x", messages=[{"role": "user", "content": "Hi"}], stream=True
        )
        await anext(stream)
        await stream.close()

    backend = await _with_client(Script(chunks=100_000, chunk_interval_s=0.01), act)

    assert [call.end for call in backend.calls] == [CallEnd.PEER_GONE]


@pytest.mark.parametrize(
    ("fault", "end"),
    [
        (Fault.RESET_BEFORE_HEAD, AnswerEnd.RESET),
        (Fault.CLOSE_BEFORE_HEAD, AnswerEnd.CUT),
        (Fault.RESET_AFTER_HEAD, AnswerEnd.RESET),
        (Fault.CLOSE_AFTER_HEAD, AnswerEnd.CUT),
        (Fault.RESET_MIDSTREAM, AnswerEnd.RESET),
        (Fault.DROP_MIDSTREAM, AnswerEnd.CUT),
        (Fault.LENGTH_TOO_LONG, AnswerEnd.CUT),
        (Fault.TRICKLE, AnswerEnd.WHOLE),
        (Fault.STALE_KEEP_ALIVE, AnswerEnd.WHOLE),
        (Fault.REFUSE_BODY, AnswerEnd.WHOLE),
    ],
)
async def test_fault_of_the_connection_is_the_same_on_a_socket(
    fault: Fault, end: AnswerEnd
) -> None:
    """What the network in memory shows is what the kernel does."""
    network = EpollNetwork()
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            await nursery.start(network.run)
            backend = await start_backend(nursery, network, Script(fault=fault))
            connection = await network.connect(BACKEND_HOST, backend.port)
            got = await ask(connection, chat_body(stream=True))
            connection.close()
            nursery.cancel_scope.cancel()

    assert got.end == end
