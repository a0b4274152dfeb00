"""The commands that ask the management API, as somebody at a terminal or a script runs them."""

import json
from pathlib import Path

import attrs
import pytest
import trio
from click.testing import CliRunner, Result

from tests.e2e.process import free_port
from tests.fakes.configuration import Desk
from tests.fakes.served_api import ServedApi
from vsr.admin.ports import Checked
from vsr.cli import main
from vsr.config.attempt import Code, Reason, Stage
from vsr.resources.management import Management, Token

FAULTS = tuple(
    Reason(Stage.COMPILE, Code.INVALID_RESOURCE, "is unknown", f"a.k{at}", "document", at + 1)
    for at in range(25)
)


@attrs.define(eq=False)
class Shell:
    """Runs commands against an API."""

    api: ServedApi
    folder: Path

    async def run(self, *arguments: str, stdin: str = "", **environ: str) -> Result:
        """Run one."""
        env = {"VSR_ADMIN_URL": self.api.url, "COLUMNS": None, **environ}

        def invoke() -> Result:
            return CliRunner().invoke(main, arguments, input=stdin, env=env)

        return await trio.to_thread.run_sync(invoke)

    def write(self, name: str, text: str) -> str:
        """Write a file; return where."""
        (self.folder / name).write_text(text)
        return str(self.folder / name)


@pytest.fixture
async def shell(nursery: trio.Nursery, tmp_path: Path) -> Shell:
    """Return one."""
    api = ServedApi(Desk())
    await nursery.start(api.run)
    return Shell(api, tmp_path)


@pytest.mark.parametrize("command", ["apply", "plan"])
async def test_faults_are_told_with_the_name_that_the_file_has_here(
    shell: Shell, command: str
) -> None:
    """The first of them; the rest is there for who asks."""
    file = shell.write("mine.yaml", "a: 1\n")
    shell.api.desk.configuration.checked = Checked(FAULTS)

    got = await shell.run("config", command, file)
    told = await shell.run("config", command, file, "--json")
    shell.api.stop()

    assert got.exit_code == told.exit_code == 1
    assert f"{file}:1: a.k0: is unknown" in got.output.replace("\n    ", " ")
    assert "and 5 more" in got.output
    found = json.loads(told.stdout)
    assert len(found["errors"] if command == "plan" else found["error"]["reasons"]) == 25


async def test_part_that_is_merged_has_its_own_name(shell: Shell) -> None:
    """Beside that of what it is merged to."""
    fault = Reason(Stage.PARSE, Code.INVALID_DOCUMENT, "must be a mapping", "", "patch", 1)
    shell.api.desk.configuration.checked = Checked((fault, FAULTS[0]))

    got = await shell.run("config", "apply", "--mode", "merge", "-", stdin="- 1\n")
    shell.api.stop()

    assert "(standard input):1: (document): must be a mapping" in got.output
    assert "(what it is merged to):1: a.k0: is unknown" in got.output


async def test_document_may_come_from_a_pipe(shell: Shell) -> None:
    """As it is, line ends included."""
    got = await shell.run("config", "apply", "-", stdin="a: 1\r\n")
    shell.api.stop()

    assert got.exit_code == 0
    assert [each.text for each, _ in shell.api.desk.configuration.written] == [b"a: 1\r\n"]


@pytest.mark.parametrize(
    "arguments", [("diff", "{here}", "nowhere.yaml"), ("diff", "nowhere.yaml"), ("plan", "{dir}")]
)
async def test_file_that_cannot_be_read_is_told(shell: Shell, arguments: tuple[str, ...]) -> None:
    """In a line, whichever of two it is."""
    places = {"here": shell.write("here.yaml", "version: v0.3\n"), "dir": str(shell.folder)}

    got = await shell.run("config", *(each.format(**places) for each in arguments))
    shell.api.stop()

    assert (got.exit_code, len(got.output.splitlines())) == (1, 1)
    assert isinstance(got.exception, SystemExit)


@pytest.mark.parametrize("order", [("good", "bad"), ("bad", "good")])
async def test_file_that_is_not_valid_is_told_with_its_name(
    shell: Shell, order: tuple[str, str]
) -> None:
    """Whichever of two it is."""
    files = {
        "good": shell.write("good.yaml", "version: v0.3\nrouting: {}\n"),
        "bad": shell.write("bad.yaml", "zzz: 1\n"),
    }

    got = await shell.run("config", "diff", *(files[each] for each in order))
    shell.api.stop()

    assert got.exit_code == 1
    assert f"{files['bad']}:1: zzz: is an unknown key" in got.output.replace("\n    ", " ")


async def test_nothing_is_cut_in_a_pipe(shell: Shell) -> None:
    """At a terminal there is as much as it has room for."""
    piped = await shell.run("config", "versions")
    narrow = await shell.run("config", "versions", COLUMNS="44")
    status = await shell.run("status", COLUMNS="44")
    shell.api.stop()

    assert "20260103-000000" in piped.output
    assert "..." not in piped.output
    lines = [*narrow.output.splitlines(), *status.output.splitlines()]
    assert 40 < max(map(len, lines)) <= 44


async def test_nobody_who_can_be_asked_is_told(shell: Shell) -> None:
    """With where, and what may be wrong."""
    nowhere = f"http://127.0.0.1:{free_port()}"
    encrypted = shell.api.url.replace("http", "https")
    outputs = {
        url: await shell.run("status", "--admin-url", url)
        for url in (nowhere, encrypted, "http://127.0.0.1:99999", "http://x/?y")
    }
    shell.api.stop()

    assert [each.exit_code for each in outputs.values()] == [1, 1, 2, 2]
    assert f"{nowhere} cannot be asked: Connection refused" in outputs[nowhere].output
    assert "does not speak TLS" in outputs[encrypted].output


async def test_token_that_is_none_is_told(nursery: trio.Nursery, tmp_path: Path) -> None:
    """And not shown."""
    desk = Desk(environ={"ROOT": "right"})
    desk.configuration.management = Management(asks_token=True, tokens=(Token("ROOT", "admin"),))
    shell = Shell(ServedApi(desk), tmp_path)
    await nursery.start(shell.api.run)

    wrong = await shell.run("status", VSR_MGMT_TOKEN="wrong-canary")
    right = await shell.run("status", VSR_MGMT_TOKEN=" right ")
    shell.api.stop()

    assert (wrong.exit_code, right.exit_code) == (1, 0)
    assert wrong.output.startswith("error: UNAUTHORIZED: ")
    assert "canary" not in wrong.output
