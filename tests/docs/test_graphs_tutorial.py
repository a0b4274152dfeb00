"""The page that leads to a first graph: its files work, its commands print what is shown."""

import re
import shlex
from pathlib import Path

import pytest
import trio
import trio.testing
from click.testing import CliRunner

from tests.docs.curl import commands, discard, run, sessions
from tests.docs.markdown import ROOT, blocks
from vsr.cli import main
from vsr.compose.generation import Parts
from vsr.compose.router import Router
from vsr.config.report import Report
from vsr.config.source import check_bytes, load_snapshot
from vsr.demo.document import serve_demo_models
from vsr.network.memory import MemoryNetwork
from vsr.telemetry.access_log import AccessLog

PAGE = "docs/graphs-tutorial.md"
FILES = ("panel.yaml", "panel.slow.scenario.yaml", "config.yaml")
SESSIONS = list(sessions(PAGE))
CURL = commands(PAGE)
DEMO_PORT = 8899
ELISION = "...\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with the page's files; what is told to be put at an end is there."""
    for name in FILES:
        text = "".join(block.text for block in blocks(f"yaml {name}"))
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _is_shown(printed: str, shown: str) -> bool:
    pattern = "(?s:.*)".join(re.escape(part) for part in shown.split(ELISION))
    return re.fullmatch(pattern, printed.strip("\n") + "\n") is not None


@pytest.mark.usefixtures("folder")
def test_commands_print_what_is_shown() -> None:
    """A reader who types them in order sees the page."""
    lines = [(line, shown) for line, shown in SESSIONS if line.startswith("vllm-sr graph")]
    assert len(lines) == 4
    for line, shown in lines:
        result = CliRunner().invoke(main, shlex.split(line)[1:])

        assert result.exit_code == 0
        assert _is_shown(result.stdout, shown), result.stdout


async def test_curl_lines_print_what_is_shown(
    folder: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Before the Router of the demo, which the page's document has as its backend."""
    del autojump_clock
    network = MemoryNetwork()
    async with trio.open_nursery() as nursery:
        await nursery.start(network.run)
        demo = await nursery.start(serve_demo_models, network, "127.0.0.1", DEMO_PORT)
        for snapshot in (
            check_bytes(demo.encode(), {}, Report("demo")).snapshot,
            load_snapshot(folder / "config.yaml", {}),
        ):
            router = await Router.bind(Parts.default(network), snapshot, AccessLog(discard))
            await nursery.start(router.run)
        printed = [await run(command, network) for command in CURL]
        nursery.cancel_scope.cancel()

    assert len(printed) == 2
    for command, text in zip(CURL, printed, strict=True):
        assert _is_shown(text, command.shown), text


def test_page_has_no_command_that_is_not_run_here() -> None:
    """But the one that starts what the test above starts in memory."""
    rest = [line for line, _ in SESSIONS if not line.startswith(("vllm-sr graph", "curl"))]

    assert rest == ["vllm-sr-router --config config.yaml --gateway standalone"]
    assert f"port {DEMO_PORT}" in (ROOT / PAGE).read_text(encoding="utf-8")
