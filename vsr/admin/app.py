"""The management API: who asks, whether they may, which handler answers."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs
import msgspec

from vsr.admin.access import Caller, caller_of, check_browser
from vsr.admin.answer import Answer, Invalid, Refusal, told
from vsr.admin.audit import Audit
from vsr.admin.call import MAX_BODY_BYTES, Call
from vsr.admin.config_diff import ConfigDiffs, diff_routes
from vsr.admin.config_reads import ConfigReads
from vsr.admin.config_writes import ConfigWrites
from vsr.admin.openapi import openapi_document
from vsr.admin.operations import Operations
from vsr.admin.page_files import page_files
from vsr.admin.paths import Paths
from vsr.admin.ports import Configuration, Serving
from vsr.admin.request_reads import RequestReads
from vsr.admin.request_routes import request_routes
from vsr.admin.routes import Route, config_routes, index_routes, operation_routes
from vsr.admin.shapes import Index, IndexEntry
from vsr.errors import BodyTooLarge, VsrError
from vsr.headers import HeaderLine

ReadBody = Callable[[int], Awaitable[bytes]]
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_GONE = 499
"""Of a change whose client left before its end."""


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
            *config_routes(reads, writes),
            *diff_routes(ConfigDiffs(self.configuration)),
            *request_routes(RequestReads(self.serving)),
            *index_routes(self._index, self._openapi),
        )
        self._paths = Paths.of(self.routes)

    async def answer(
        self, method: bytes, target: bytes, lines: Sequence[HeaderLine], read_body: ReadBody
    ) -> tuple[int, list[HeaderLine], bytes]:
        """Return status, fields and body of the answer to a request.

        Args:
            method: as sent.
            target: path and query.
            lines: names in lower case.
            read_body: returns the body under a limit; see `gateway.exchange.Exchange.read_body`.
        """
        path, _, query = target.decode("latin-1").partition("?")
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
        methods = found.routes
        route = methods.get(asked.verb)
        is_open = route is not None and not route.permission
        caller = (
            Caller("", frozenset())
            if is_open
            else caller_of(management, self.around.environ, asked.lines)
        )
        if not methods:
            raise Refusal(404, "NOT_FOUND", "This API has no such path; GET /api/v1 lists them.")
        if route is None:
            allow = ", ".join(sorted(methods)).encode()
            message = "This path is not asked with that method."
            raise Refusal(405, "METHOD_NOT_ALLOWED", message, lines=((b"allow", allow),))
        asked = msgspec.structs.replace(asked, parameters=found.parameters)
        return await self._audited(route, caller, asked, read_body)

    async def _audited(
        self, route: Route, caller: Caller, asked: _Asked, read_body: ReadBody
    ) -> Answer:
        """Do what is asked; an attempt to change something is noted however it ends."""
        status = _GONE
        try:
            answer = await self._permitted(route, caller, asked, read_body)
            status = answer.status
        except Refusal as refusal:
            status = refusal.status
            raise
        else:
            return answer
        finally:
            if route.action:
                self.audit.note_request(
                    route.action,
                    request_id=asked.request_id,
                    role=caller.principal,
                    place=(route.method, route.path),
                    status=status,
                )

    async def _permitted(
        self, route: Route, caller: Caller, asked: _Asked, read_body: ReadBody
    ) -> Answer:
        if route.permission and not caller.may(route.permission):
            message = f"The role {caller.principal} does not permit {route.permission}."
            raise Refusal(403, "FORBIDDEN", message)
        body = b"" if route.body is None else await _body(read_body)
        if_match = next((v for name, v in asked.lines if name == b"if-match"), None)
        call = Call(
            caller,
            asked.request_id,
            route.method,
            route.path,
            asked.raw_query,
            None if if_match is None else if_match.decode("latin-1"),
            body,
            asked.parameters,
        )
        return await route.handler(call)

    async def _index(self, _call: Call) -> Answer:
        entries = [
            IndexEntry(each.method, each.path, each.summary, each.permission)
            for each in self.routes
        ]
        return told(Index(tuple(entries)))

    async def _openapi(self, _call: Call) -> Answer:
        return told(openapi_document(self.routes, self.around.release))


async def _body(read_body: ReadBody) -> bytes:
    try:
        return await read_body(MAX_BODY_BYTES)
    except BodyTooLarge as error:
        raise Refusal(413, "REQUEST_BODY_TOO_LARGE", str(error)) from None
    except VsrError as error:
        if error.status == 408:  # noqa: PLR2004  # the client stopped sending
            raise Refusal(408, "REQUEST_TIMEOUT", str(error)) from None
        raise Invalid(str(error)) from None
