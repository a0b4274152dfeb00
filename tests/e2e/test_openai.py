"""The official OpenAI client through the Router: on Trio here, else in its own process."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import openai
import pytest
import trio
from openai.types.chat import ChatCompletionMessageParam

from tests.e2e.standalone import LISTENER, Standalone, start_standalone
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.demo.server import CallEnd

# The official client leaves its generators behind when a stream has said that it is done.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
PATIENCE_S = 10
PROCESS_PATIENCE_S = 30
KEY = "sk-client"
LIMIT_BYTES = 1024 * 1024
SCRIPTS = Path(__file__).parent / "scripts"
HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Grüße, 世界 🌍"}]
CODE: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Is this python?"}]


@pytest.fixture
def script() -> Script:
    """Return how the backends behave; tests override it by parametrizing."""
    return Script()


@pytest.fixture
async def served(nursery: trio.Nursery, script: Script) -> Standalone:
    """Serve clients that have a key, and bodies up to a limit."""
    listener = attrs.evolve(LISTENER, api_keys=(KEY.encode(),), max_body_bytes=LIMIT_BYTES)
    return await start_standalone(nursery, script, listener=listener)


@pytest.fixture
async def client(served: Standalone) -> AsyncIterator[openai.AsyncOpenAI]:
    """Return the client, which does not retry unless a test asks for it."""
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(
        base_url=served.url, api_key=KEY, max_retries=0, timeout=PATIENCE_S, http_client=http
    ) as client:
        yield client


async def test_answer_is_chosen_by_what_the_request_says(
    served: Standalone, client: openai.AsyncOpenAI
) -> None:
    """The same model name is served by two backends, depending on the content."""
    chat = client.chat.completions

    plain = await chat.create(model="auto", messages=HELLO)
    code = await chat.create(model="auto", messages=CODE)
    named = await chat.create(model="small", messages=CODE)

    assert plain.choices[0].message.content == "small says: Grüße, 世界 🌍"
    assert [plain.model, code.model, named.model] == ["small", "large", "small"]
    assert [json.loads(seen.body)["model"] for seen in served.small.seen] == ["small", "small"]


async def test_client_key_stays_with_the_router(
    served: Standalone, client: openai.AsyncOpenAI
) -> None:
    """A key of the listener is no backend's business."""
    await client.chat.completions.create(model="auto", messages=HELLO)

    headers = served.small.seen[0].headers
    assert b"authorization" not in headers
    assert KEY.encode() not in b"".join(value for _, value in headers)


async def test_stream_arrives_whole(client: openai.AsyncOpenAI) -> None:
    """Text, usage and finish reason are there, and the text is cut nowhere."""
    stream = await client.chat.completions.create(
        model="auto", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )

    chunks = [chunk async for chunk in stream]

    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == "small says: Grüße, 世界 🌍"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 5


async def test_raw_response_shows_the_routing(client: openai.AsyncOpenAI) -> None:
    """Which decision and model served is in the headers."""
    raw = await client.chat.completions.with_raw_response.create(model="auto", messages=CODE)

    named = {name: raw.headers.get(f"x-vsr-selected-{name}") for name in ("decision", "model")}
    assert named == {"decision": "code", "model": "large"}
    assert raw.headers["x-vsr-selected-algorithm"] == "static"
    assert raw.headers["x-vsr-schema-version"] == "2"
    assert raw.parse().model == "large"


async def test_raw_stream_shows_the_routing(client: openai.AsyncOpenAI) -> None:
    """Headers come before the first chunk."""
    raw = await client.chat.completions.with_raw_response.create(
        model="auto", messages=CODE, stream=True
    )

    assert raw.headers["x-vsr-selected-model"] == "large"
    assert raw.headers["content-type"].startswith("text/event-stream")
    assert len([chunk async for chunk in raw.parse()]) > 2


async def test_models_are_listed(client: openai.AsyncOpenAI) -> None:
    """The list holds what a client may ask for."""
    models = [model.id async for model in client.models.list()]

    assert models == ["vllm-sr/auto"]


@pytest.mark.parametrize("script", [Script(faults=(503,))])
async def test_client_retries_a_backend_that_fails_once(
    served: Standalone, client: openai.AsyncOpenAI
) -> None:
    """A 503 is one that the client repeats, and the second attempt is served."""
    patient = client.with_options(max_retries=1)

    answer = await patient.chat.completions.create(model="auto", messages=HELLO)

    assert answer.model == "small"
    assert len(served.small.seen) == 2


@pytest.mark.parametrize("script", [Script(faults=(Fault.CLOSE_BEFORE_HEAD,))])
async def test_client_retries_a_backend_that_hangs_up_once(
    served: Standalone, client: openai.AsyncOpenAI
) -> None:
    """Our own local reply is one that the client repeats, too."""
    patient = client.with_options(max_retries=1)

    answer = await patient.chat.completions.create(model="auto", messages=HELLO)

    assert answer.model == "small"
    assert len(served.small.seen) == 2


async def test_wrong_key_is_an_authentication_error(
    served: Standalone, client: openai.AsyncOpenAI
) -> None:
    """401, and no backend hears of it."""
    stranger = client.with_options(api_key="sk-other")

    with pytest.raises(openai.AuthenticationError) as caught:
        await stranger.chat.completions.create(model="auto", messages=HELLO)

    assert caught.value.code == "invalid_api_key"
    assert caught.value.response.headers["www-authenticate"].startswith("Bearer ")
    assert served.small.seen == []


async def test_api_that_is_not_served_is_a_not_found_error(
    served: Standalone, client: openai.AsyncOpenAI
) -> None:
    """404 by the Router; passing it on would bypass routing."""
    with pytest.raises(openai.NotFoundError) as caught:
        await client.responses.create(model="auto", input="Hi")

    assert caught.value.code == "not_found"
    assert served.small.seen == []


async def test_unknown_model_is_a_bad_request_error(
    served: Standalone, client: openai.AsyncOpenAI
) -> None:
    """400 as the reference answers it, not 404."""
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(model="nope", messages=HELLO)

    assert caught.value.code == "model_not_found"
    assert served.small.seen == []


async def test_bad_body_is_a_bad_request_error_that_names_the_member(
    client: openai.AsyncOpenAI,
) -> None:
    """`param` says which member is at fault."""
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(
            model="auto", messages=HELLO, extra_body={"messages": "Hi"}
        )

    assert caught.value.param == "messages"


async def test_body_over_the_limit_is_a_status_error(
    served: Standalone, client: openai.AsyncOpenAI
) -> None:
    """The client is still sending when it is refused, and gets the answer all the same."""
    messages: list[ChatCompletionMessageParam] = [
        {"role": "user", "content": "x" * 16 * LIMIT_BYTES}
    ]

    with pytest.raises(openai.APIStatusError) as caught:
        await client.chat.completions.create(model="auto", messages=messages)

    assert (caught.value.status_code, caught.value.code) == (413, "request_too_large")
    assert served.small.seen == []


@pytest.mark.parametrize("script", [Script(fault=429)])
async def test_rate_limit_of_the_backend_passes(client: openai.AsyncOpenAI) -> None:
    """Status, body and when to try again are the backend's."""
    with pytest.raises(openai.RateLimitError) as caught:
        await client.chat.completions.create(model="auto", messages=HELLO)

    assert caught.value.response.headers["retry-after"] == "1"
    assert caught.value.code == "rate_limit_exceeded"


@pytest.mark.parametrize("script", [Script(fault=status) for status in (500, 502, 503, 529)])
async def test_failure_of_the_backend_passes(client: openai.AsyncOpenAI, script: Script) -> None:
    """Its own status and body reach the client."""
    with pytest.raises(openai.InternalServerError) as caught:
        await client.chat.completions.create(model="auto", messages=HELLO)

    assert caught.value.status_code == script.fault
    assert f"told to answer {script.fault}" in str(caught.value)


@pytest.mark.parametrize("script", [Script(fault=Fault.RESET_BEFORE_HEAD)])
async def test_backend_that_resets_is_a_server_error(client: openai.AsyncOpenAI) -> None:
    """Nothing had been sent to the client, so it gets a local reply that says why."""
    with pytest.raises(openai.InternalServerError) as caught:
        await client.chat.completions.create(model="auto", messages=HELLO)

    assert caught.value.status_code == 503
    assert "connection termination" in caught.value.response.text


@pytest.mark.parametrize(
    "script", [Script(fault=fault) for fault in (Fault.DROP_MIDSTREAM, Fault.RESET_MIDSTREAM)]
)
async def test_stream_that_breaks_off_is_an_error(client: openai.AsyncOpenAI) -> None:
    """What arrived is delivered, and the client is told that it is not all."""
    stream = await client.chat.completions.create(model="auto", messages=HELLO, stream=True)

    first = [await anext(stream), await anext(stream)]
    with pytest.raises(openai.APIError, match="ended before its answer did"):
        await anext(stream)

    assert [chunk.choices[0].delta.content for chunk in first] == ["", "small"]


@pytest.mark.parametrize("script", [Script(chunks=10_000, chunk_interval_s=0.005)])
async def test_client_that_closes_a_stream_ends_the_call(
    served: Standalone, client: openai.AsyncOpenAI
) -> None:
    """The backend does not go on for nobody."""
    stream = await client.chat.completions.create(model="auto", messages=HELLO, stream=True)
    await anext(stream)

    await stream.close()
    await client.close()
    with trio.fail_after(PATIENCE_S):
        await served.settled()

    assert [call.end for call in served.small.calls] == [CallEnd.PEER_GONE]


@pytest.mark.parametrize("script", [Script(latency_s=30)])
async def test_client_that_gives_up_waiting_ends_the_call(
    served: Standalone, client: openai.AsyncOpenAI
) -> None:
    """A client's own timeout frees everything that its request holds."""
    hasty = client.with_options(timeout=0.1)

    with pytest.raises(openai.APITimeoutError):
        await hasty.chat.completions.create(model="auto", messages=HELLO)
    await client.close()
    with trio.fail_after(PATIENCE_S):
        await served.settled()

    assert [call.end for call in served.small.calls] == [CallEnd.PEER_GONE]


@pytest.mark.parametrize("program", ["openai_sync.py", "openai_asyncio.py"])
@pytest.mark.parametrize("script", [Script(faults=(503,))])
async def test_client_in_its_own_process_gets_the_same(served: Standalone, program: str) -> None:
    """The synchronous client, and the asynchronous one on asyncio."""
    command = [sys.executable, str(SCRIPTS / program), served.url, KEY]

    with trio.fail_after(PROCESS_PATIENCE_S):
        done = await trio.run_process(command, capture_stdout=True)

    assert json.loads(done.stdout) == {
        "retried": "large says: Say python, é",
        "decision": "code",
        "raw": "large says: Say python, é",
        "stream": "large says: Say python, é",
        "models": ["vllm-sr/auto"],
        "errors": [
            "BadRequestError",
            "NotFoundError",
            "AuthenticationError",
            "RateLimitError",
        ],
    }
    assert len(served.large.calls) == 5
