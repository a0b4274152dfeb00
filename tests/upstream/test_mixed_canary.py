"""Whatever fails between us and unlike backends: nothing shows a secret or an address."""

import gc
import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.h2_backend import Act, GoAway, Head, Play, Raw, Reset
from tests.fakes.router import clusters_of
from tests.upstream.mixed_scene import NOTHING, MixedScene, start_mixed
from tests.upstream.raw_backend import reply
from vsr.network.memory import MemoryNetwork
from vsr.routing.effect import Effect
from vsr.upstream.metrics import make_renderer

SECRETS = ("shared-canary-key", "shared-canary-header", "claude-canary-key", "client-canary")
BACKENDS_WORD = "canary-of-the-backend"
ADDRESS = "192.0.2.77"
"""What the names of backends are found at."""
HOSTS = (ADDRESS, "plain.test", "shared.test", "claude.test")


@attrs.frozen
class Ill:
    """What is wrong."""

    play: Play = (Head(), b"{}")
    """Of the backend over HTTP/2."""
    egress: str = "{}"
    stranger: bool = False
    claude_ca: str = "ours.pem"
    """It is another one's."""
    plain: bytes = BACKENDS_WORD.encode() + b"\r\n\r\n"


ILLS: Mapping[str, Ill] = {
    "nothing is allowed": Ill(egress=f"{{deny: [{ADDRESS}]}}"),
    "our certificate is turned down": Ill(stranger=True),
    "stream is reset": Ill((Reset(),)),
    "connection is lost": Ill((Act.ABORT,)),
    "connection goes away": Ill((GoAway(processed=False),)),
    "broken frames": Ill((Raw(BACKENDS_WORD.encode() * 9),)),
    "broken head": Ill((Head(200, ((b"content-length", BACKENDS_WORD.encode()),)), b"{}")),
    "error of a backend": Ill(
        (Head(503), BACKENDS_WORD.encode()), plain=reply(503, BACKENDS_WORD.encode())
    ),
    "nonsense of a backend": Ill((Head(), BACKENDS_WORD.encode())),
}


@pytest.mark.parametrize("ill", ILLS)
async def test_failures_show_no_secret(
    ill: str,
    nursery: trio.Nursery,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Not in logs, spans, metrics, our own errors, nor in how any object shows itself."""
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.DEBUG, "vsr")
    scene = await _start(nursery, tmp_path, ILLS[ill])

    answers = [await _ask(scene, target, stream) for target in _TARGETS for stream in (0, 1) * 2]

    assert any(status != 200 for status, _ in answers)
    shown = await _shown(scene, caplog)
    key_lines = (tmp_path / "router.key").read_text().splitlines()[1:-1]
    for sink, text in shown.items():
        for secret in (*SECRETS, *key_lines, BACKENDS_WORD):
            assert secret not in text, sink
    assert not any(ADDRESS in shown[sink] for sink in ("access log", "spans"))
    # Hosts as configured are in the access log and in spans; their words are operators' own.
    for text in (shown["logs"], shown["metrics"], *_own_errors(answers)):
        assert not any(word in text for word in (*HOSTS, *SECRETS))
    assert await scene.held() == NOTHING


_TARGETS = (b"/v1/chat/completions", b"/v1/messages")


async def _start(nursery: trio.Nursery, folder: Path, ill: Ill) -> MixedScene:
    network = MemoryNetwork()
    for name in HOSTS[1:]:
        network.addresses[name] = lambda: [ADDRESS]
    scene = await start_mixed(
        nursery,
        folder,
        ill.play,
        egress=ill.egress,
        network=network,
        stranger=ill.stranger,
        claude_ca=ill.claude_ca,
        reliability="retry_count: 1, retry_on: '5xx', health_check_path: /health",
    )
    scene.plain.answer = ill.plain
    return scene


async def _ask(scene: MixedScene, target: bytes, stream: int) -> tuple[int, str]:
    body = json.loads(chat_body(model="mix", stream=bool(stream))) | {"max_tokens": 9}
    lines = [(b"authorization", b"client-canary"), (b"x-api-key", b"client-canary")]
    got = await scene.router.ask(json.dumps(body).encode(), target=target, lines=lines)
    return got.status, got.raw.decode("latin-1")


def _own_errors(answers: list[tuple[int, str]]) -> Iterator[str]:
    """Yield the answers that hold no word of a backend: it may say what it wants."""
    for status, text in answers:
        if status != 200 and BACKENDS_WORD not in text:
            yield text


async def _shown(scene: MixedScene, caplog: pytest.LogCaptureFixture) -> dict[str, str]:
    generation = scene.router.generation
    clusters = clusters_of(generation)
    return {
        "logs": caplog.text,
        "access log": (await scene.router.log_text()).decode(),
        "spans": "".join(span.to_json() for span in scene.recorder.spans),
        "metrics": make_renderer(lambda: clusters)().decode(),
        "objects": "\n".join(_objects(scene.load(), generation)),
    }


def _objects(*roots: object) -> Iterator[str]:
    """Yield how everything of ours shows itself that a configuration is made of.

    An effect is a list of header lines, and shows itself as one; what has effects hides them.
    Nor is it about what connections remember of lines that they have sent.
    """
    looked_at, left = set[int](), list(roots)
    while left:
        each = left.pop()
        if id(each) in looked_at or isinstance(each, (type, Effect)):
            continue
        looked_at.add(id(each))
        module = str(type(each).__module__)
        if module.startswith("vsr.http."):
            continue
        if module.startswith("vsr."):
            yield repr(each)
        if module.startswith("vsr.") or isinstance(each, (tuple, list, dict)):
            left += gc.get_referents(each)
