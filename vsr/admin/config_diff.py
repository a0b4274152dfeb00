"""What differs between two recorded configurations."""

import attrs
import msgspec

from vsr.admin.answer import Answer, Refusal, told
from vsr.admin.call import Call
from vsr.admin.ports import Configuration, DocumentFailed
from vsr.admin.routes import CONFIG, Parameter, Route, read
from vsr.config.diff import Change
from vsr.config.inspection import Inspect

_EARLIER = "id of the earlier record; the one that was recorded before, if it is left out"


class ConfigDiff(msgspec.Struct, frozen=True, rename={"earlier": "from", "later": "to"}):
    """What differs."""

    earlier: str
    later: str
    changes: tuple[Change, ...]
    """Without secrets; files that a document includes are not compared."""


@attrs.frozen
class ConfigDiffs:
    """Handlers about differences."""

    configuration: Configuration

    async def records(self, call: Call) -> Answer:
        """Answer `GET /api/v1/config/versions/{id}/changes`."""
        later = call.parameters["id"]
        text = await self._text(later)
        earlier = call.query.get("from") or await self._before(later)
        base = await self._text(earlier)
        inspected = await self.configuration.inspect(Inspect(text, base=base))
        if inspected.changes is None:
            message = "One of the two is no valid document for this version of the Router."
            raise Refusal(500, "BACKUP_INVALID", message)
        return told(ConfigDiff(earlier, later, inspected.changes))

    async def _before(self, record_id: str) -> str:
        try:
            ids = [each.id for each in await self.configuration.records() if each.has_document]
        except DocumentFailed as error:
            raise _unreadable(error) from None
        older = [each for each in ids if each < record_id]
        if not older:
            message = "The history has no document before it."
            raise Refusal(404, "VERSION_NOT_FOUND", message)
        return max(older)

    async def _text(self, record_id: str) -> bytes:
        try:
            found = await self.configuration.recorded(record_id)
        except DocumentFailed as error:
            raise _unreadable(error) from None
        if found is None:
            raise Refusal(404, "VERSION_NOT_FOUND", "The history has no such document.")
        return found.text


def _unreadable(error: DocumentFailed) -> Refusal:
    return Refusal(500, "READ_ERROR", f"The history cannot be read: {error}.")


def diff_routes(diffs: ConfigDiffs) -> list[Route]:
    """Return the endpoints."""
    path, summary = f"{CONFIG}/versions/{{id}}/changes", "What differs from an earlier record"
    query = (Parameter("from", {"type": "string", "minLength": 1}, _EARLIER),)
    route = read(path, summary, diffs.records, ConfigDiff)
    return [msgspec.structs.replace(route, query=query)]
