"""The demo's document and its lines to try."""

import json
import shlex

import pytest
import trio
import trio.testing

from tests.demo.raw_client import ask, chat_body
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.demo.document import demo_banner, demo_document, serve_demo_models
from vsr.network.memory import MemoryNetwork


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0"])
def test_demo_document_is_faultless(host: str) -> None:
    """It compiles, listens where it was told, and knows both models."""
    text = demo_document(host, 8899, small_port=1001, large_port=1002)

    document = check_bytes(text.encode(), {}, Report("demo")).document

    assert document.listeners is not None
    assert [(each.address, each.port) for each in document.listeners] == [(host, 8899)]
    assert document.providers.defaults.model == "demo-small"
    endpoints = {each.name: each.backend_refs[0].endpoint for each in document.providers.models}
    assert endpoints == {"demo-small": "127.0.0.1:1001", "demo-large": "127.0.0.1:1002"}
    decisions = {each.name: each.modelRefs[-1].model for each in document.routing.decisions}
    assert decisions == dict.fromkeys(("draft", "hurry", "code", "long_prompt"), "demo-large")


async def test_serve_demo_models_serves_what_the_document_names(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Each endpoint answers as the model it belongs to, one after the other within 10 ms."""
    network = MemoryNetwork()
    start = autojump_clock.current_time()

    async with trio.open_nursery() as nursery:
        text = await nursery.start(serve_demo_models, network, "127.0.0.1", 8899)
        document = check_bytes(text.encode(), {}, Report("demo")).document
        models: dict[str, object] = {}
        for model in document.providers.models:
            host, _, port = str(model.backend_refs[0].endpoint).partition(":")
            connection = await network.connect(host, int(port))
            models[model.name] = (await ask(connection, chat_body())).json()["model"]
        nursery.cancel_scope.cancel()

    assert models == {"demo-small": "demo-small", "demo-large": "demo-large"}
    assert autojump_clock.current_time() - start == pytest.approx(0.010)


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("127.0.0.1", "http://127.0.0.1:8899"),
        ("0.0.0.0", "http://127.0.0.1:8899"),
        ("::", "http://[::1]:8899"),
    ],
)
def test_demo_banner_has_three_commands_that_a_shell_understands(host: str, base: str) -> None:
    """Each is one line with a URL that can be dialled and a JSON body; one streams."""
    lines = [line for line in demo_banner(host, 8899).splitlines() if "curl" in line]

    commands = [shlex.split(line) for line in lines]
    assert [command[:2] for command in commands] == [
        ["curl", "-s"],
        ["curl", "-si"],
        ["curl", "-sN"],
    ]
    assert {command[2] for command in commands} == {f"{base}/v1/chat/completions"}
    bodies = [json.loads(command[command.index("-d") + 1]) for command in commands]
    assert [body.get("stream", False) for body in bodies] == [False, False, True]
    assert "python" not in str(bodies[0]).lower()
    assert all("Python" in str(body) for body in bodies[1:])
