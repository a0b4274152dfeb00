"""Drives a Router with the synchronous openai client and prints what it got as JSON.

Arguments: the base URL and the client's key.
"""

import json
import sys
from collections.abc import Callable

import openai
from openai.types.chat import ChatCompletionMessageParam

MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say python, é"}]


def main() -> None:
    """Ask, and print the answers."""
    url, key = sys.argv[1:]
    http = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(base_url=url, api_key=key, max_retries=1, http_client=http) as client:
        json.dump(_ask(client), sys.stdout)


def _ask(client: openai.OpenAI) -> dict[str, object]:
    chat = client.chat.completions
    got: dict[str, object] = {
        # The backend fails once, so the first answer is a retried one.
        "retried": chat.create(model="auto", messages=MESSAGES).choices[0].message.content,
    }
    raw = chat.with_raw_response.create(model="auto", messages=MESSAGES)
    got["decision"] = raw.headers["x-vsr-selected-decision"]
    got["raw"] = raw.parse().choices[0].message.content
    stream = chat.create(model="auto", messages=MESSAGES, stream=True)
    got["stream"] = "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
    got["models"] = [model.id for model in client.models.list()]
    strict = client.with_options(max_retries=0)
    got["errors"] = [
        _error(lambda: strict.chat.completions.create(model="nope", messages=MESSAGES)),
        _error(lambda: strict.responses.create(model="auto", input="Hi")),
        _error(strict.with_options(api_key="wrong").models.list),
        _error(
            lambda: strict.chat.completions.create(
                model="auto", messages=MESSAGES, extra_headers={"x-demo-status": "429"}
            )
        ),
    ]
    return got


def _error(act: Callable[[], object]) -> str:
    try:
        act()
    except openai.OpenAIError as error:
        return type(error).__name__
    return "none"


if __name__ == "__main__":
    main()
