"""The management API: who asks, whether they may, which handler answers."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain

import attrs
import msgspec

from vsr.admin.access import Caller, caller_of, check_browser
from vsr.admin.answer import Answer, Invalid, Refusal, told
from vsr.admin.audit import Audit
from vsr.admin.call import MAX_BODY_BYTES, Call
from vsr.admin.config_diff import ConfigDiffs, diff_routes
from vsr.admin.config_reads import ConfigReads
from vsr.admin.config_writes import ConfigWrites
from vsr.admin.docs_page import docs_page
from vsr.admin.openapi import openapi_document
from vsr.admin.operations import Operations
from vsr.admin.page_files import page_files
from vsr.admin.paths import Found, Paths
from vsr.admin.ports import Configuration, Serving
from vsr.admin.recipes import Recipes
from vsr.admin.request_reads import RequestReads
from vsr.admin.request_routes import request_routes
from vsr.admin.routes import (
    Route,
    config_routes,
    index_routes,
    operation_routes,
    recipe_routes,
)
from vsr.admin.schema_reads import SchemaReads
from vsr.admin.shapes import Index, IndexEntry
from vsr.admin.unavailable import unavailable_routes
from vsr.errors import BodyTooLarge, VsrError
from vsr.headers import HeaderLine

ReadBody = Callable[[int], Awaitable[bytes]]
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_ABSOLUTE = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)
_GONE, _BROKEN = 499, 500
"""Of a change whose client left before its end, and of one that a fault of ours ended."""


class Surroundings(msgspec.Struct, frozen=True):
    """What the API needs of the process."""

    environ: Mapping[str, str]
    """Has the tokens."""
    unix: Callable[[], float]
    """Now, in seconds since 1970."""
    new_id: Callable[[], str]
    """Returns an id for a request that came without one."""
    release: str
    """Version of the Router."""


class _Asked(msgspec.Struct, frozen=True):
    """The head of a request."""

    method: bytes
    path: str
    raw_query: str
    lines: Sequence[HeaderLine]
    request_id: str
    parameters: Mapping[str, str] = {}
    """What the path has in the place of names."""

    @property
    def verb(self) -> str:
        """Return the method that a route has: HEAD is a GET whose body nobody sends."""
        return "GET" if self.method == b"HEAD" else self.method.decode("latin-1")

    def field(self, name: bytes) -> str | None:
        """Return the values of all lines of a name, which is a list; None if there is none."""
        values = [value for each, value in self.lines if each == name]
        return b", ".join(values).decode("latin-1") if values else None


@attrs.define(eq=False)
class App:
    """Answers requests; knows no connections."""

    configuration: Configuration
    serving: Serving
    audit: Audit
    around: Surroundings
    routes: tuple[Route, ...] = attrs.field(init=False)
    _paths: Paths = attrs.field(init=False)
    _page: Mapping[str, Answer] = attrs.field(factory=page_files, init=False)

    def __attrs_post_init__(self) -> None:
        reads, writes = ConfigReads(self.configuration), ConfigWrites(self.configuration)
        release = self.around.release
        operations = Operations(self.configuration, self.serving, self.audit, release)
        self.routes = (
            *operation_routes(operations),
            *config_routes(reads, writes, SchemaReads()),
            *diff_routes(ConfigDiffs(self.configuration)),
            *request_routes(RequestReads(self.serving)),
            *recipe_routes(Recipes(reads, writes)),
            *index_routes(self._index, self._openapi, self._docs),
            *unavailable_routes(),
        )
        self._paths = Paths.of(self.routes)

    async def answer(
        self, method: bytes, target: bytes, lines: Sequence[HeaderLine], read_body: ReadBody
    ) -> tuple[int, list[HeaderLine], bytes]:
        """Return status, fields and body of the answer to a request.

        Args:
            method: as sent.
            target: path and query, or a whole URL of this host.
            lines: names in lower case.
            read_body: returns the body under a limit; see `gateway.exchange.Exchange.read_body`.
        """
        place = target.decode("latin-1")
        if absolute := _ABSOLUTE.match(place):
            # Its host is what counts. Source: RFC 9112, section 3.2.2.
            place = place[absolute.end() :]
            host = (b"host", absolute[1].encode("latin-1"))
            lines = [*(each for each in lines if each[0] != b"host"), host]
        path, _, query = place.partition("?")
        given = next((value for name, value in lines if name == b"x-request-id"), b"")
        request_id = given.decode("ascii") if _REQUEST_ID.fullmatch(given) else self.around.new_id()
        asked = _Asked(method, path, query, lines, request_id)
        try:
            answer = await self._answer(asked, read_body)
        except Refusal as refusal:
            answer = refusal.answer(request_id, self.around.unix())
        return answer.status, answer.fields(request_id), answer.body

    async def _answer(self, asked: _Asked, read_body: ReadBody) -> Answer:
        management = self.configuration.management
        check_browser(asked.method, asked.lines, management)
        if asked.verb == "GET" and (file := self._page.get(asked.path)) is not None:
            return file
        found = self._paths.find(asked.path)
        route = found.routes.get(asked.verb)
        asked_for = found.routes.values() if route is None else [route]
        is_open = bool(asked_for) and not any(each.permission for each in asked_for)
        caller = (
            Caller("", frozenset())
            if is_open
            else caller_of(management, self.around.environ, asked.lines)
        )
        if not found.routes:
            raise Refusal(404, "NOT_FOUND", "This API has no such path; GET /api/v1 lists them.")
        if route is None:
            return _other_method(asked, found)
        call = Call(
            caller,
            asked.request_id,
            route.method,
            asked.path,
            asked.raw_query,
            asked.field(b"if-match"),
            parameters=found.parameters,
        )
        return await self._audited(route, call, read_body)

    async def _audited(self, route: Route, call: Call, read_body: ReadBody) -> Answer:
        """Do what is asked; an attempt to change something is noted however it ends."""
        status = _GONE
        try:
            answer = await _permitted(route, call, read_body)
            status = answer.status
        except Refusal as refusal:
            status = refusal.status
            raise
        except Exception:
            status = _BROKEN
            raise
        else:
            return answer
        finally:
            if route.action:
                self.audit.note_request(
                    route.action,
                    request_id=call.request_id,
                    role=call.caller.principal,
                    place=(call.method, call.path),
                    status=status,
                )

    async def _index(self, _call: Call) -> Answer:
        entries = [
            IndexEntry(
                each.method, each.path, each.summary, each.permission, available=each.is_available
            )
            for each in self.routes
        ]
        return told(Index(tuple(entries)))

    async def _openapi(self, _call: Call) -> Answer:
        asks_token = self.configuration.management.asks_token
        return told(openapi_document(self.routes, self.around.release, asks_token=asks_token))

    async def _docs(self, _call: Call) -> Answer:
        return docs_page(self.routes, self.around.release)


async def _permitted(route: Route, call: Call, read_body: ReadBody) -> Answer:
    if route.permission and not call.caller.may(route.permission):
        message = f"The role {call.caller.principal} does not permit {route.permission}."
        raise Refusal(403, "FORBIDDEN", message)
    if route.body is not None:
        call = msgspec.structs.replace(call, body=await _body(read_body))
    return await route.handler(call)


def _other_method(asked: _Asked, found: Found) -> Answer:
    """Answer a method that a path does not have; OPTIONS is told those that it has.

    Raises:
        Refusal: it is any other.
    """
    known = set(chain(found.routes, ["OPTIONS"], ["HEAD"] if "GET" in found.routes else []))
    allow = (b"allow", ", ".join(sorted(known)).encode())
    if asked.method == b"OPTIONS":
        return Answer(204, b"", lines=(allow,))
    message = "This path is not asked with that method."
    raise Refusal(405, "METHOD_NOT_ALLOWED", message, lines=(allow,))


async def _body(read_body: ReadBody) -> bytes:
    try:
        return await read_body(MAX_BODY_BYTES)
    except BodyTooLarge as error:
        raise Refusal(413, "REQUEST_BODY_TOO_LARGE", str(error)) from None
    except VsrError as error:
        if error.status == 408:  # noqa: PLR2004  # the client stopped sending
            raise Refusal(408, "REQUEST_TIMEOUT", str(error)) from None
        raise Invalid(str(error)) from None
