"""`vllm-sr config migrate`: what it writes, says and refuses."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vsr.cli import main
from vsr.config.migrate.command import migrate

OLD = "version: v0.3\nproviders:\n  defaults:\n    default_model: a # the one\n"
NEW = OLD.replace("default_model", "model") + "routing:\n  signals: {}\n"


def run(*arguments: str | Path) -> Result:
    """Return what the command did."""
    return CliRunner().invoke(migrate, [str(argument) for argument in arguments])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return an old document on disk."""
    path = tmp_path / "config.yaml"
    path.write_text(OLD)
    return path


def test_result_stands_beside_the_document(source: Path) -> None:
    """The changes and what to do next go to standard output; the document stays as it was."""
    target = source.with_name("config.migrated.yaml")

    result = run("--config", source)

    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "providers.defaults.default_model: is now providers.defaults.model",
        f"{target}: written, 1 change; check it with `vllm-sr config validate {target}`",
    ]
    assert target.read_text() == NEW
    assert source.read_text() == OLD
    assert {path.name for path in source.parent.iterdir()} == {source.name, target.name}


def test_output_names_the_result(source: Path) -> None:
    """In place of the name beside the document."""
    target = source.parent / "new"

    result = run("--config", source, "--output", target)

    assert result.exit_code == 0
    assert target.read_text() == NEW


def test_existing_result_is_not_overwritten(source: Path) -> None:
    """Exit 1, and the file is as it was."""
    target = source.with_name("config.migrated.yaml")
    target.write_text("mine")

    result = run("--config", source)

    assert result.exit_code == 1
    assert result.stdout == ""
    expected = f"{target}:1: (document): exists already, pass --force, or another --output\n"
    assert result.stderr == expected
    assert target.read_text() == "mine"


def test_force_overwrites_the_result(source: Path) -> None:
    """Even if it is the document itself."""
    result = run("--config", source, "--output", source, "--force")

    assert result.exit_code == 0
    assert source.read_text() == NEW


def test_canonical_document_is_copied(source: Path) -> None:
    """Byte for byte, and the command says that there was nothing to do."""
    canonical = b"\xef\xbb\xbfversion:   v0.3\r\nlisteners: [ ]\r\n"
    source.write_bytes(canonical)
    target = source.with_name("config.migrated.yaml")

    result = run("--config", source)

    assert result.stdout == (
        f"{target}: written, the same as {source}, which has nothing to migrate\n"
    )
    assert target.read_bytes() == canonical


def test_result_is_as_private_as_the_document(source: Path) -> None:
    """A document may hold credentials."""
    source.chmod(0o640)

    run("--config", source)

    mode = source.with_name("config.migrated.yaml").stat().st_mode
    assert stat.S_IMODE(mode) == 0o640


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: \xff\n", ":1: (document): is not UTF-8 text, save the file as UTF-8\n"),
        (b"a: 1\nb: [\n", ":3: (document): is not valid YAML, while parsing a flow node"),
        (b"a: ]" + b" " * (8 << 20), ":1: (document): is too large"),
    ],
)
def test_unreadable_document_is_refused(source: Path, content: bytes, message: str) -> None:
    """With file and line, and nothing is written."""
    source.write_bytes(content)

    result = run("--config", source)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"{source}{message}")
    assert [path.name for path in source.parent.iterdir()] == [source.name]


def test_missing_document_is_refused(tmp_path: Path) -> None:
    """Exit 1 with the system's words."""
    path = tmp_path / "none.yaml"

    result = run("--config", path)

    assert result.exit_code == 1
    assert result.stderr == (
        f"{path}:1: (document): can't be read, No such file or directory, check the path\n"
    )


def test_result_that_cannot_be_written_is_refused(source: Path) -> None:
    """Exit 1 with the system's words."""
    target = source.parent / "none" / "config.yaml"

    result = run("--config", source, "--output", target)

    assert result.exit_code == 1
    assert "can't be written, No such file or directory" in result.stderr


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_nothing_is_left_of_a_result_that_cannot_be_completed(
    source: Path, force: list[str]
) -> None:
    """Here the name is short enough for a file, but not for the one written first."""
    target = source.parent / ("x" * 250)

    result = run("--config", source, "--output", target, *force)

    assert result.exit_code == 1
    assert "can't be written, File name too long" in result.stderr
    assert [path.name for path in source.parent.iterdir()] == [source.name]


def test_nothing_is_left_if_the_result_cannot_take_its_place(source: Path) -> None:
    """Here a folder has its name."""
    target = source.parent / "folder"
    target.mkdir()

    result = run("--config", source, "--output", target, "--force")

    assert result.exit_code == 1
    assert "can't be written, Is a directory" in result.stderr
    assert {path.name for path in source.parent.iterdir()} == {source.name, target.name}


def test_command_is_one_of_config() -> None:
    """`vllm-sr config migrate` is what the pages call it."""
    result = CliRunner().invoke(main, ["config", "migrate", "--help"])

    assert result.exit_code == 0
    assert all(flag in result.stdout for flag in ("--config FILE", "--output FILE", "--force"))


def test_import_of_the_command_loads_no_library() -> None:
    """`--help` answers at once: what migrates is imported when it is needed."""
    script = (
        "import sys; import vsr.config.migrate.command;"
        "print(sorted({'ruamel.yaml', 'yaml', 'attrs', 'trio'} & set(sys.modules)))"
    )

    result = subprocess.run(  # noqa: S603  # our own interpreter
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert result.stdout == "[]\n"
