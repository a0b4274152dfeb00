"""What `vllm-sr config versions | plan | apply | rollback | diff` do; see `config_commands`."""

import sys
from pathlib import Path

import click
import msgspec

from vsr.commands.api_client import Api, Told, echo_json, fail
from vsr.commands.change_lines import Change, change_lines
from vsr.commands.table import table, wrapped

_CONFIG = "/api/v1/config"


class _Version(msgspec.Struct, frozen=True):
    version: str
    timestamp: str
    source: str
    config_version: int
    hash: str
    rollback_of: int
    active: bool


class _Finding(msgspec.Struct, frozen=True):
    message: str
    field: str = ""
    path: str = ""
    line: int = 0


class _Plan(msgspec.Struct, frozen=True):
    valid: bool
    changes: tuple[Change, ...] | None = None
    reused: tuple[str, ...] = ()
    restart_required: tuple[_Finding, ...] = ()
    errors: tuple[_Finding, ...] = ()
    warnings: tuple[_Finding, ...] = ()


class _Validation(msgspec.Struct, frozen=True):
    valid: bool
    diff: tuple[Change, ...] | None = None
    errors: tuple[_Finding, ...] = ()


class _Deployed(msgspec.Struct, frozen=True):
    status: str
    message: str
    version: str = ""


def tell_versions(api: Api, output: str) -> None:
    """Print the recorded configurations."""
    told = api.ask("GET", f"{_CONFIG}/versions")
    if output == "json":
        echo_json(told)
        return
    rows = [
        (
            str(each.config_version or "-"),
            "active" if each.active else "",
            each.timestamp,
            each.source + (f" of {each.rollback_of}" if each.rollback_of else ""),
            each.hash[:12],
            each.version,
        )
        for each in told.read(list[_Version])
    ]
    click.echo(table(("VERSION", "", "RECORDED", "FROM", "SHA-256", "ID"), rows))


def roll_back(version: str, api: Api, output: str) -> None:
    """Serve a recorded configuration again."""
    body = {"version": version}
    told = api.ask("POST", f"{_CONFIG}/rollback", body, if_match=api.etag(), allowed=(503,))
    _tell_deployed(told, output)


def apply_file(file: Path, mode: str, api: Api, output: str) -> None:
    """Write a file to the document, and serve it."""
    method = "PUT" if mode == "replace" else "PATCH"
    body = {"yaml": _text(file)}
    told = api.ask(method, _CONFIG, body, if_match=api.etag(), allowed=(503,))
    _tell_deployed(told, output)


def plan_file(file: Path, mode: str, api: Api, output: str) -> None:
    """Print what applying a file would change."""
    told = api.ask("POST", f"{_CONFIG}/plan", {"yaml": _text(file), "mode": mode})
    found = told.read(_Plan)
    if output == "json":
        echo_json(told)
    else:
        _tell_plan(found)
    sys.exit(0 if found.valid and not found.restart_required else 1)


def compare(files: tuple[str, ...], api: Api, output: str) -> None:
    """Print how documents differ."""
    match files:
        case (file,):
            changes = _from_serving(Path(file), api)
        case (file, other):
            changes = _between(Path(file), Path(other))
        case _:
            raise click.UsageError("one or two files can be compared")
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(changes), indent=2).decode())
    else:
        for line in change_lines(changes):
            click.echo(line)
        if not changes:
            click.echo("nothing differs")
    sys.exit(1 if changes else 0)


def _from_serving(file: Path, api: Api) -> tuple[Change, ...]:
    body = {"yaml": _text(file), "compare_to_active": True}
    found = api.ask("POST", f"{_CONFIG}/validate", body).read(_Validation)
    if found.diff is None:
        _tell_findings("error", found.errors)
        fail("the two cannot be compared: one of them is not valid")
    return found.diff


def _between(file: Path, other: Path) -> tuple[Change, ...]:
    import os  # noqa: PLC0415

    from vsr.config.inspecting import Subject  # noqa: PLC0415
    from vsr.config.inspection import Inspect  # noqa: PLC0415

    question = Inspect(other.read_bytes(), base=_text(file).encode(), file=str(other))
    found, _ = Subject(os.environ).of(question)
    if found.changes is None:
        for reason in found.reasons:
            click.echo(f"{reason.file}:{reason.line}: {reason.path}: {reason.message}", err=True)
        fail("the two cannot be compared: one of them is not valid")
    return msgspec.convert(msgspec.to_builtins(found.changes), tuple[Change, ...])


def _tell_plan(found: _Plan) -> None:
    for line in change_lines(found.changes or ()):
        click.echo(line)
    if found.changes == ():
        click.echo("nothing changes")
    _tell_findings("error", found.errors)
    _tell_findings("needs a restart", found.restart_required)
    _tell_findings("warning", found.warnings)
    if found.valid and found.reused:
        click.echo(f"goes on as it is: {', '.join(found.reused)}")
    click.echo("it would be served" if found.valid else "it would be refused")


def _tell_findings(kind: str, found: tuple[_Finding, ...]) -> None:
    for each in found:
        line = f" (line {each.line})" if each.line else ""
        path = each.field or each.path or "(document)"
        click.echo(wrapped(f"{kind}: {path}{line}: {each.message}", 4))


def _tell_deployed(told: Told, output: str) -> None:
    found = told.read(_Deployed)
    if output == "json":
        echo_json(told)
    else:
        click.echo(wrapped(found.message, 4))
        if found.version:
            click.echo(f"what was there before is kept as {found.version}")
    if found.status == "activation_failed":
        sys.exit(1)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        fail(f"{file}: {error.strerror or 'it cannot be read'}")
    except UnicodeDecodeError:
        fail(f"{file}: it is not UTF-8 text")
