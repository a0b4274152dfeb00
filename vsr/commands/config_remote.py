"""What `vllm-sr config versions | plan | apply | rollback | diff` do; see `config_commands`."""

import sys
from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from vsr.commands.api_client import FIRST_FAULTS, Api, Fault, Told, echo_json, fail, fault_line
from vsr.commands.change_lines import Change, change_lines
from vsr.commands.table import room, table, wrapped

_CONFIG = "/api/v1/config"
_STANDARD_INPUT = "-"


class _Version(msgspec.Struct, frozen=True):
    version: str
    timestamp: str
    source: str
    config_version: int
    hash: str
    rollback_of: int
    active: bool


class _Plan(msgspec.Struct, frozen=True):
    valid: bool
    changes: tuple[Change, ...] | None = None
    reused: tuple[str, ...] = ()
    restart_required: tuple[Fault, ...] = ()
    errors: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()


class _Validation(msgspec.Struct, frozen=True):
    valid: bool
    diff: tuple[Change, ...] | None = None
    errors: tuple[Fault, ...] = ()


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
            f"{each.config_version or '-'}{' (active)' if each.active else ''}",
            each.timestamp,
            each.source + (f" of {each.rollback_of}" if each.rollback_of else ""),
            each.hash[:8],
            each.version,
        )
        for each in told.read(list[_Version])
    ]
    click.echo(table(("VERSION", "RECORDED", "FROM", "SHA-256", "ID"), rows, room()))


def roll_back(version: str, api: Api, output: str) -> None:
    """Serve a recorded configuration again."""
    body = {"version": version}
    told = api.ask("POST", f"{_CONFIG}/rollback", body, if_match=api.etag(), allowed=(503,))
    _tell_deployed(told, output)


def apply_file(file: Path, mode: str, api: Api, output: str) -> None:
    """Write a file to the document, and serve it."""
    method = "PUT" if mode == "replace" else "PATCH"
    body = {"yaml": _text(file)}
    names = _names(file, mode)
    told = api.ask(method, _CONFIG, body, if_match=api.etag(), allowed=(503,), names=names)
    _tell_deployed(told, output)


def _names(file: Path, mode: str) -> dict[str, str]:
    """Return what FILE is called by the API, and what it is merged into."""
    name = "(standard input)" if str(file) == _STANDARD_INPUT else str(file)
    if mode == "replace":
        return {"document": name}
    return {"patch": name, "document": "(what it is merged to)"}


def plan_file(file: Path, mode: str, api: Api, output: str) -> None:
    """Print what applying a file would change."""
    told = api.ask("POST", f"{_CONFIG}/plan", {"yaml": _text(file), "mode": mode})
    found = told.read(_Plan)
    if output == "json":
        echo_json(told)
    else:
        _tell_plan(found, _names(file, mode))
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
        for line in change_lines(changes, room()):
            click.echo(line)
        if not changes:
            click.echo("nothing differs")
    sys.exit(1 if changes else 0)


def _from_serving(file: Path, api: Api) -> tuple[Change, ...]:
    body = {"yaml": _text(file), "compare_to_active": True}
    found = api.ask("POST", f"{_CONFIG}/validate", body).read(_Validation)
    if found.diff is None:
        _tell_faults("error", found.errors, _names(file, "replace"))
        fail("the two cannot be compared: one of them is not valid")
    return found.diff


def _between(file: Path, other: Path) -> tuple[Change, ...]:
    import os  # noqa: PLC0415

    from vsr.config.inspecting import Subject  # noqa: PLC0415
    from vsr.config.inspection import Inspect  # noqa: PLC0415

    subject = Subject(os.environ)
    before, after = _text(file).encode(), _text(other).encode()
    for each, text in ((file, before), (other, after)):
        found, valid = subject.of(Inspect(text, file=str(each)))
        if valid is None:
            faults = msgspec.convert(msgspec.to_builtins(found.reasons), tuple[Fault, ...])
            _tell_faults("error", faults, {"document": str(each)})
            fail("the two cannot be compared: one of them is not valid")
    found, _ = subject.of(Inspect(after, base=before, file=str(other)))
    return msgspec.convert(msgspec.to_builtins(found.changes or ()), tuple[Change, ...])


def _tell_plan(found: _Plan, names: Mapping[str, str]) -> None:
    for line in change_lines(found.changes or (), room()):
        click.echo(line)
    if found.changes == ():
        click.echo("nothing changes")
    _tell_faults("error", found.errors, names)
    _tell_faults("needs a restart", found.restart_required, names)
    _tell_faults("warning", found.warnings, names)
    if found.valid and found.reused:
        click.echo(f"goes on as it is: {', '.join(found.reused)}")
    if found.valid and found.restart_required:
        click.echo("it would be refused without a restart")
    else:
        click.echo("it would be served" if found.valid else "it would be refused")


def _tell_faults(kind: str, found: tuple[Fault, ...], names: Mapping[str, str]) -> None:
    for each in found[:FIRST_FAULTS]:
        line, width = f"{kind}: {fault_line(each, names)}", room()
        # As compilers tell it where another program reads it.
        click.echo(line if width is None else wrapped(line, 4, width=width))
    if len(found) > FIRST_FAULTS:
        click.echo(f"and {len(found) - FIRST_FAULTS} more; --json tells them all")


def _tell_deployed(told: Told, output: str) -> None:
    found = told.read(_Deployed)
    if output == "json":
        echo_json(told)
    else:
        click.echo(wrapped(found.message, 4, width=room()))
        if found.version:
            click.echo(f"what was there before is kept as {found.version}")
    if found.status == "activation_failed":
        sys.exit(1)


def _text(file: Path) -> str:
    """Return what a file holds, or standard input where it is called `-`."""
    try:
        if str(file) == _STANDARD_INPUT:
            return sys.stdin.buffer.read().decode()
        return file.read_bytes().decode()
    except OSError as error:
        fail(f"{file}: {error.strerror or 'it cannot be read'}")
    except UnicodeDecodeError:
        fail(f"{file}: it is not UTF-8 text")
