"""The official clients on streams with comments: they read past them, and raise on the error."""

from collections.abc import AsyncIterator

import anthropic
import openai
import pytest
import trio
from openai.types.chat import ChatCompletionMessageParam

from tests.e2e.standalone import Standalone, document, start_document, until
from tests.e2e.wire import chat, connect, post
from tests.fakes.backend import start_backend
from vsr.demo.script import Script
from vsr.network.epoll import EpollNetwork

# The official clients leave their generators behind when a stream has said that it is done.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
PATIENCE_S = 20
HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello"}]
FREED_WITHIN_S = 0.2

_ROUTING = """\
routing:
  graphs:
    tested:
      stream: {progress: true, keep_alive_after: 1s}
      steps:
        - {id: first, type: call, model: small}
        - {id: last, type: call, model: large, stream: tail}
        - {type: respond, from: $last}
  decisions:
    - name: all
      modelRefs: [{model: small}]
      algorithm: {type: graph, graph: tested}
"""


@pytest.fixture
def large() -> Script:
    """Return how the last model behaves; tests override it by parametrizing."""
    return Script(model="large")


@pytest.fixture
async def served(nursery: trio.Nursery, large: Script) -> Standalone:
    """Serve a graph whose first call takes more than a second."""
    network = EpollNetwork()
    await nursery.start(network.run)
    first = await start_backend(nursery, network, Script(latency_s=1.2))
    last = await start_backend(nursery, network, large)
    text = document(port=1, small=first.port, large=last.port, routing=_ROUTING)
    router, access_log, log_text = await start_document(nursery, network, text)
    return Standalone(network, router, first, last, access_log, log_text)


@pytest.fixture
async def client(served: Standalone) -> AsyncIterator[openai.AsyncOpenAI]:
    """Return the OpenAI client, which does not retry."""
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(
        base_url=served.url, api_key="any", max_retries=0, timeout=PATIENCE_S, http_client=http
    ) as client:
        yield client


@pytest.fixture
async def claude(served: Standalone) -> AsyncIterator[anthropic.AsyncAnthropic]:
    """Return the Anthropic client, which does not retry."""
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    async with anthropic.AsyncAnthropic(
        base_url=f"http://127.0.0.1:{served.port}",
        api_key="any",
        max_retries=0,
        timeout=PATIENCE_S,
        http_client=http,
    ) as client:
        yield client


async def test_openai_client_reads_past_comments(client: openai.AsyncOpenAI) -> None:
    """The head comes at once, the text when there is some."""
    start_s = trio.current_time()
    stream = await client.chat.completions.create(model="auto", messages=HELLO, stream=True)
    head_s = trio.current_time() - start_s

    chunks = [chunk async for chunk in stream]

    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == "large says: Hello"
    assert head_s < 1


@pytest.mark.parametrize("large", [Script(fault=422)])
async def test_openai_client_raises_on_the_error_event(
    served: Standalone, client: openai.AsyncOpenAI
) -> None:
    """With the error that the backend has told."""
    stream = await client.chat.completions.create(model="auto", messages=HELLO, stream=True)

    with pytest.raises(openai.APIError) as caught:
        _ = [chunk async for chunk in stream]

    assert isinstance(caught.value.body, dict)
    assert caught.value.message == caught.value.body["message"]
    await until(lambda: not any(served.held().values()), FREED_WITHIN_S)
    [line] = await served.log_lines()
    assert (line["response_code"], line["outcome"]) == (422, "failed")


async def test_anthropic_client_reads_past_comments(claude: anthropic.AsyncAnthropic) -> None:
    """Its stream is whole, by the accumulating helper of the client."""
    async with claude.messages.stream(
        model="auto", max_tokens=64, messages=[{"role": "user", "content": "Hello"}]
    ) as stream:
        message = await stream.get_final_message()

    [block] = message.content
    assert block.type == "text"
    assert block.text == "large says: Hello"


@pytest.mark.parametrize("large", [Script(fault=422)])
async def test_anthropic_client_raises_on_the_error_event(
    claude: anthropic.AsyncAnthropic,
) -> None:
    """As a status error, the type of the failure in its body."""
    stream = await claude.messages.create(
        model="auto", max_tokens=64, messages=[{"role": "user", "content": "Hello"}], stream=True
    )

    with pytest.raises(anthropic.APIStatusError) as caught:
        _ = [event async for event in stream]

    body = caught.value.body
    assert isinstance(body, dict)
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")


async def test_client_that_leaves_behind_a_comment_frees_all(served: Standalone) -> None:
    """On real sockets, too."""
    with await connect(served.port) as client:
        await client.send(post(chat(stream=True)))
        await client.first_byte()

        client.close()
        await until(lambda: not any(served.held().values()), FREED_WITHIN_S)

    [line] = await served.log_lines()
    assert (line["outcome"], line["cause"]) == ("cancelled", "client_gone")
