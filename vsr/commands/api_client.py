"""Asking the management API of a Router that runs."""

import json
import os
import sys
from collections.abc import Mapping
from typing import NoReturn, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from vsr.commands.api_flags import TOKEN_VARIABLE

_Kind = TypeVar("_Kind")
_TIMEOUT_S = 60.0
"""More than a change may take."""
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
_FIRST_ERROR = 400


class Told(msgspec.Struct, frozen=True):
    """An answer."""

    status: int
    body: bytes
    etag: str = ""

    def read(self, kind: type[_Kind]) -> _Kind:
        """Return its content as a class, more members than it has allowed."""
        return msgspec.json.decode(self.body, type=kind)


class Api(msgspec.Struct, frozen=True):
    """One management API."""

    url: str

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        if_match: str = "",
        allowed: tuple[int, ...] = (),
    ) -> Told:
        """Send a request; anything but success ends the command with a message.

        Args:
            method: of it.
            path: and query.
            body: plain values, sent as JSON; None: nothing is sent.
            if_match: precondition; empty: none.
            allowed: statuses from 400 that the caller reads itself.
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
            fail(_error_text(told))
        return told

    def etag(self) -> str:
        """Return the ETag of the persisted document."""
        return self.ask("GET", "/api/v1/config/hash").etag

    def _exchange(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> Told:
        import http.client  # noqa: PLC0415  # takes a while, and `--help` asks nobody

        parts = urlsplit(self.url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        try:
            # Nothing is followed or retried: a token goes where it was sent, once.
            connection = kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
            connection.request(method, parts.path.rstrip("/") + path, content, dict(headers))
            response = connection.getresponse()
            answer = response.read(_MAX_ANSWER_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            fail(f"the management API at {self.url} cannot be asked: {reason}")
        return Told(response.status, answer, response.headers.get("etag", ""))


def echo_json(told: Told) -> None:
    """Print an answer as it is, indented."""
    click.echo(msgspec.json.format(told.body.strip(), indent=2).decode())


def fail(message: str) -> NoReturn:
    """End the command with a message."""
    click.echo(f"error: {message}", err=True)
    sys.exit(1)


class _Reason(msgspec.Struct, frozen=True):
    message: str = ""
    path: str = ""
    file: str = ""
    line: int = 0


class _Error(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""
    reasons: tuple[_Reason, ...] = ()


class _ErrorBody(msgspec.Struct, frozen=True):
    error: _Error = _Error()


def _error_text(told: Told) -> str:
    try:
        error = told.read(_ErrorBody).error
    except msgspec.MsgspecError:
        return f"status {told.status}, and no word of why: is this the management API?"
    lines = [f"{error.code}: {error.message}" if not error.reasons else error.code]
    for reason in error.reasons:
        place = f"{reason.file}:{reason.line}: " if reason.file else ""
        lines.append(f"  {place}{reason.path or '(document)'}: {reason.message}")
    return "\n".join(lines)
