"""The README's session with the demo: each command gives the output shown."""

import re

import pytest
import trio
import trio.testing
from click.testing import CliRunner

from tests.docs.curl import Command, commands, discard, run, sessions
from tests.docs.markdown import ROOT, blocks
from vsr.cli import main
from vsr.compose.generation import Parts
from vsr.compose.router import Router
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.demo.document import serve_demo_models
from vsr.network.memory import MemoryNetwork
from vsr.telemetry.access_log import AccessLog

PORT = 8899
ELISION = "...\n"
_LATENCY = re.compile(r"(?<=x-vsr-routing-latency-ms: )[0-9.]+")


COMMANDS = commands("README.md")


def test_readme_shows_three_curl_lines_and_a_document_of_ten_lines() -> None:
    """The page keeps what it promises, and the test below has something to run."""
    documents = [block for block in blocks("yaml") if block.place.startswith("README.md")]

    assert len(COMMANDS) == 3
    assert [block.text.count("\n") for block in documents] == [10]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.data.decode()[-30:])
async def test_curl_line_prints_what_is_shown(
    command: Command, autojump_clock: trio.testing.MockClock
) -> None:
    """A reader who types a line sees the page; only the latency is a reading of the clock."""
    del autojump_clock
    network = MemoryNetwork()
    async with trio.open_nursery() as nursery:
        await nursery.start(network.run)
        document = await nursery.start(serve_demo_models, network, "127.0.0.1", PORT)
        snapshot = check_bytes(document.encode(), {}, Report("demo")).snapshot
        router = await Router.bind(Parts.default(network), snapshot, AccessLog(discard))
        await nursery.start(router.run)

        printed = await run(command, network)

        nursery.cancel_scope.cancel()
    wanted = [re.escape(_LATENCY.sub("0", part)) for part in command.shown.split(ELISION)]
    assert re.fullmatch("(?s:.*)".join(wanted), _LATENCY.sub("0", printed).strip("\n") + "\n")


def test_readme_names_make_targets_that_exist() -> None:
    """What the page says to run is there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    targets = set(re.findall(r"make ([a-z-]+)", text))

    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert [target for target in targets if f"\n{target}:" not in makefile] == []


def test_graph_commands_run() -> None:
    """Both that the page shows, as they are written."""
    lines = [line for line, _ in sessions("README.md") if "vllm-sr graph" in line]

    assert len(lines) == 2
    for line in lines:
        assert CliRunner().invoke(main, line.split()[1:]).exit_code == 0
