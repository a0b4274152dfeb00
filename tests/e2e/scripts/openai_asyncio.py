"""Drives a Router with the asynchronous openai client on asyncio and prints what it got as JSON.

Arguments: the base URL and the client's key.
"""

import asyncio  # noqa: TID251  # what many users' programs run on; this is one, not a test
import json
import sys
from collections.abc import Awaitable

import openai
from openai.types.chat import ChatCompletionMessageParam

MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say python, é"}]


async def main() -> None:
    """Ask, and print the answers."""
    url, key = sys.argv[1:]
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(
        base_url=url, api_key=key, max_retries=1, http_client=http
    ) as client:
        json.dump(await _ask(client), sys.stdout)


async def _ask(client: openai.AsyncOpenAI) -> dict[str, object]:
    chat = client.chat.completions
    first = await chat.create(model="auto", messages=MESSAGES)
    # The backend fails once, so the first answer is a retried one.
    got: dict[str, object] = {"retried": first.choices[0].message.content}
    raw = await chat.with_raw_response.create(model="auto", messages=MESSAGES)
    got["decision"] = raw.headers["x-vsr-selected-decision"]
    got["raw"] = raw.parse().choices[0].message.content
    stream = await chat.create(model="auto", messages=MESSAGES, stream=True)
    got["stream"] = "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])
    got["models"] = [model.id async for model in client.models.list()]
    strict = client.with_options(max_retries=0)
    got["errors"] = [
        await _error(strict.chat.completions.create(model="nope", messages=MESSAGES)),
        await _error(strict.responses.create(model="auto", input="Hi")),
        await _error(strict.with_options(api_key="wrong").models.list()),
        await _error(
            strict.chat.completions.create(
                model="auto", messages=MESSAGES, extra_headers={"x-demo-status": "429"}
            )
        ),
    ]
    return got


async def _error(act: Awaitable[object]) -> str:
    try:
        await act
    except openai.OpenAIError as error:
        return type(error).__name__
    return "none"


if __name__ == "__main__":
    asyncio.run(main())
