"""Asking the management API of a Router that runs."""

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from vsr.commands.api_flags import TOKEN_VARIABLE, Target

if TYPE_CHECKING:
    import ssl

_Kind = TypeVar("_Kind")
_TIMEOUT_S = 60.0
"""More than a change may take."""
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
_FIRST_ERROR = 400
FIRST_FAULTS = 20
"""That are told; a document of another kind has one for every line."""
NO_NAMES: Mapping[str, str] = MappingProxyType({})


class Told(msgspec.Struct, frozen=True):
    """An answer."""

    status: int
    body: bytes
    etag: str = ""

    @property
    def is_json(self) -> bool:
        """Return whether a program would know what to make of it."""
        try:
            msgspec.json.decode(self.body)
        except msgspec.MsgspecError:
            return False
        return True

    def read(self, kind: type[_Kind]) -> _Kind:
        """Return its content as a class, more members than it has allowed."""
        return msgspec.json.decode(self.body, type=kind)


class Api(msgspec.Struct, frozen=True):
    """One management API."""

    target: Target
    as_json: bool = False
    """Whether refusals are told as they came."""

    def ask(  # of a request
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        if_match: str = "",
        allowed: tuple[int, ...] = (),
        names: Mapping[str, str] = NO_NAMES,
    ) -> Told:
        """Send a request; anything but success ends the command with a message.

        Args:
            method: of it.
            path: and query.
            body: plain values, sent as JSON; None: nothing is sent.
            if_match: precondition; empty: none.
            allowed: statuses from 400 that the caller reads itself.
            names: of files in reasons, by what the API calls them.
        """
        headers = {"accept": "application/json"}
        if token := os.environ.get(TOKEN_VARIABLE, "").strip():
            headers["authorization"] = f"Bearer {token}"
        if if_match:
            headers["if-match"] = if_match
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["content-type"] = "application/json"
        told = self._exchange(method, path, content, headers)
        if told.status >= _FIRST_ERROR and told.status not in allowed:
            if self.as_json and told.is_json:
                echo_json(told)
                sys.exit(1)
            fail(_error_text(told, names))
        return told

    def etag(self) -> str:
        """Return the ETag of the persisted document."""
        return self.ask("GET", "/api/v1/config/hash").etag

    def _exchange(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> Told:
        import http.client  # noqa: PLC0415  # takes a while, and `--help` asks nobody

        parts = urlsplit(self.target.url)
        host = parts.hostname or ""
        try:
            # Nothing is followed or retried: a token goes where it was sent, once.
            connection = (
                http.client.HTTPConnection(host, parts.port, timeout=_TIMEOUT_S)
                if parts.scheme == "http"
                else http.client.HTTPSConnection(
                    host, parts.port, timeout=_TIMEOUT_S, context=self._context()
                )
            )
            with contextlib.closing(connection):
                connection.request(method, parts.path.rstrip("/") + path, content, dict(headers))
                response = connection.getresponse()
                answer = response.read(_MAX_ANSWER_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            fail(f"the management API at {self.target.url} cannot be asked: {_reason(error)}")
        return Told(response.status, answer, response.headers.get("etag", ""))

    def _context(self) -> "ssl.SSLContext":
        import ssl  # noqa: PLC0415  # as above

        return ssl.create_default_context(cafile=self.target.ca_file)


def _reason(error: Exception) -> str:
    """Return why nothing came back, in words of the one who asked."""
    told = getattr(error, "verify_message", "")
    if told:
        return f"{told}; --admin-ca-file says whom to trust"
    if getattr(error, "reason", "") in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST"}:
        return "it does not speak TLS; is it http://?"
    text = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return str(text) or type(error).__name__


def echo_json(told: Told) -> None:
    """Print an answer as it is, indented."""
    click.echo(msgspec.json.format(told.body.strip(), indent=2).decode())


def fail(message: str) -> NoReturn:
    """End the command with a message."""
    click.echo(f"error: {message}", err=True)
    sys.exit(1)


class Fault(msgspec.Struct, frozen=True):
    """One fault of a document, as a reason or as a finding tells it."""

    message: str = ""
    path: str = ""
    field: str = ""
    """Another word for `path`."""
    file: str = ""
    line: int = 0


def fault_line(fault: Fault, names: Mapping[str, str]) -> str:
    """Return a fault as the commands that read files tell it: `file:line: path: what`."""
    place = ""
    if fault.file:
        line = f":{fault.line}" if fault.line else ""
        place = f"{names.get(fault.file, fault.file)}{line}: "
    return f"{place}{fault.path or fault.field or '(document)'}: {fault.message}"


class _Error(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""
    reasons: tuple[Fault, ...] = ()


class _ErrorBody(msgspec.Struct, frozen=True):
    error: _Error = _Error()


def _error_text(told: Told, names: Mapping[str, str]) -> str:
    try:
        error = told.read(_ErrorBody).error
    except msgspec.MsgspecError:
        return f"status {told.status}, and no word of why: is this the management API?"
    lines = [f"{error.code}: {error.message}" if not error.reasons else error.code]
    lines.extend(f"  {fault_line(each, names)}" for each in error.reasons[:FIRST_FAULTS])
    if more := len(error.reasons) - FIRST_FAULTS:
        lines += [f"  and {more} more; --json tells them all"] if more > 0 else []
    return "\n".join(lines)
