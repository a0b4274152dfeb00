"""The commands around the configuration document."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from vsr.cli import main, router_main

FIXTURES = Path(__file__).parents[2] / "fixtures" / "config"
ENVIRON = {"BACKEND_KEY": "canary-backend", "CLIENT_KEY": "canary-two", "PUBLIC_PORT": "8801"}


def test_validate_accepts_a_document_in_one_line() -> None:
    """Counts and hash on standard output, exit 0."""
    path = FIXTURES / "accepted" / "routing.yaml"

    result = CliRunner().invoke(main, ["config", "validate", str(path)], env=ENVIRON)

    assert result.exit_code == 0
    assert result.stderr == ""
    counts = "2 listeners, 2 models, 4 decisions"
    assert result.stdout.startswith(f"{path}: valid ({counts}), sha256 ")
    assert len(result.stdout.split()[-1]) == 64


def test_validate_refuses_a_document_with_every_problem() -> None:
    """One line per problem on standard error, exit 1."""
    path = FIXTURES / "rejected" / "stages.yaml"
    golden = path.with_suffix(".problems").read_text().splitlines()[1:]

    result = CliRunner().invoke(main, ["config", "validate", str(path)])

    assert result.exit_code == 1
    assert result.stdout == ""
    expected = [line.replace("stages.yaml:", f"{path}:", 1) for line in golden]
    assert result.stderr.splitlines() == expected


def test_validate_tells_what_is_not_served_and_accepts_the_document() -> None:
    """It is valid; only --serve makes that an error, and then all of it is told."""
    path = FIXTURES / "rejected" / "not-served-keys.yaml"

    told = CliRunner().invoke(main, ["config", "validate", str(path)])
    refused = CliRunner().invoke(main, ["config", "validate", "--serve", "standalone", str(path)])

    assert told.exit_code == 0
    assert told.stdout == refused.stdout
    assert told.stdout.startswith(f"{path}: valid (1 listener, 2 models, 1 decision), sha256 ")
    first, *problems = told.stderr.splitlines()
    assert first == "this version cannot serve it in standalone mode:"
    assert problems[-1] == "and 1 more; --serve standalone tells them all"
    assert refused.exit_code == 1
    golden = path.with_suffix(".problems").read_text().splitlines()[1:]
    assert len(refused.stderr.splitlines()) == 1 + len(golden)


def test_validate_asks_for_the_credentials_only_of_what_is_served(tmp_path: Path) -> None:
    """A document is valid anywhere; the machine that serves it needs its secrets."""
    path = tmp_path / "config.yaml"
    backend = "{provider: openai, api_key_env: BACKEND_KEY}"
    path.write_text(f"providers: {{models: [{{name: chat, backend_refs: [{backend}]}}]}}")

    told = CliRunner().invoke(main, ["config", "validate", str(path)], env={"BACKEND_KEY": None})

    assert told.exit_code == 0
    assert "the environment variable 'BACKEND_KEY' is not set" in told.stderr


def test_validate_counts_recipes_and_shows_warnings() -> None:
    """A warning is no fault."""
    path = FIXTURES / "accepted" / "recipes.yaml"

    result = CliRunner().invoke(main, ["config", "validate", "--serve", "standalone", str(path)])

    assert result.exit_code == 0
    assert "(1 listener, 2 models, 3 decisions, 2 recipes)" in result.stdout
    assert [line.partition(": ")[0] for line in result.stderr.splitlines()] == ["warning"] * 2


def test_validate_knows_what_an_envoy_in_front_does_not_honour() -> None:
    """And says which mode does."""
    path = FIXTURES / "accepted" / "recipes.yaml"

    result = CliRunner().invoke(main, ["config", "validate", "--serve", "extproc", str(path)])

    assert result.exit_code == 1
    assert "listeners[0].tls: is honored only in standalone mode" in result.stderr


def test_schema_is_printed_as_json() -> None:
    """Other programs read it."""
    result = CliRunner().invoke(main, ["config", "schema"])

    schema = json.loads(result.stdout)
    assert result.exit_code == 0
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "Decision" in schema["$defs"]


@pytest.mark.parametrize("flags", [[], ["--redact"]])
def test_show_always_redacts(flags: list[str]) -> None:
    """Redaction is no choice."""
    path = FIXTURES / "accepted" / "providers.yaml"

    result = CliRunner().invoke(main, ["config", "show", *flags, str(path)], env=ENVIRON)

    assert result.exit_code == 0
    assert "api_key: <redacted>" in result.stdout
    assert "canary" not in result.output


def test_show_refuses_a_faulty_document() -> None:
    """There is no effective document to show."""
    path = FIXTURES / "rejected" / "version.yaml"

    result = CliRunner().invoke(main, ["config", "show", str(path)])

    assert result.exit_code == 1
    assert "version: must be v0.3" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--gateway extproc is not served by this version; pass --gateway standalone"),
        (["--gateway", "nginx"], 'unknown gateway mode "nginx": use "standalone" or "extproc"'),
        (["--gateway", "standalone", "--workers", "0"], "0 is not in the range"),
    ],
)
def test_router_refuses_what_it_does_not_serve(arguments: list[str], message: str) -> None:
    """A usage error, exit 2, before the document is read."""
    result = CliRunner().invoke(router_main, ["--config", "none.yaml", *arguments])

    assert result.exit_code == 2
    assert message in result.stderr


def test_router_needs_a_document() -> None:
    """There is no default path."""
    result = CliRunner().invoke(router_main, ["--gateway", "standalone"])

    assert result.exit_code == 2
    assert "--config" in result.stderr


@pytest.mark.parametrize("command", [main, router_main])
def test_version_is_that_of_the_distribution(command: object) -> None:
    """Both commands are of one version."""
    result = CliRunner().invoke(command, ["--version"])  # type: ignore[arg-type]  # parametrised

    assert result.exit_code == 0
    assert result.output.startswith(("vllm-sr, version ", "vllm-sr-router, version "))


def test_help_imports_nothing_heavy() -> None:
    """`--help` answers at once because the libraries behind the commands stay unloaded."""
    heavy = ("trio", "cattrs", "attrs", "yaml", "httptools", "msgspec", "re2", "ssl", "vsr.compose")
    script = (
        "import sys; from vsr.cli import main; main(['--help'], standalone_mode=False);"
        f"print('LOADED', sorted(set({heavy!r}) & set(sys.modules)))"
    )

    result = subprocess.run(  # noqa: S603  # our own interpreter
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert "Commands:" in result.stdout
    assert "LOADED []" in result.stdout
