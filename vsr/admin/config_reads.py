"""Reading the configuration: the document, its hashes, its history, and what a change would do."""

import hashlib

import attrs
import msgspec

from vsr.admin.answer import JSON, Answer, Refusal, told
from vsr.admin.call import Call, encoded
from vsr.admin.ports import Checked, Configuration, DocumentFailed
from vsr.admin.shapes import (
    Finding,
    Hashes,
    PlanBody,
    Planned,
    ValidateBody,
    Validation,
    VersionEntry,
    attempt_view,
    finding,
    reason_view,
)
from vsr.config.history import Record
from vsr.config.inspection import Inspect, Inspected
from vsr.headers import HeaderLine


class Read(msgspec.Struct, frozen=True):
    """The persisted document, and what answers about it carry."""

    json: bytes
    lines: tuple[HeaderLine, ...]


@attrs.frozen
class ConfigReads:
    """Handlers that change nothing."""

    configuration: Configuration

    async def document(self, call: Call) -> Answer:
        """Answer `GET /api/v1/config`."""
        read = await self.read(call)
        return Answer(200, read.json + b"\n", JSON, read.lines)

    async def read(self, call: Call) -> Read:
        """Return the persisted document as whoever asks may see it.

        Raises:
            Refusal: it cannot be read, or is not valid.
        """
        text = await persisted(self.configuration)
        question = Inspect(
            text, is_persisted=True, wants_json=True, reveals=call.caller.sees_secrets
        )
        inspected = await self.configuration.inspect(question)
        lines = (etag_line(text), *self._serving_lines())
        if inspected.reasons:
            message = "The persisted document is not valid; PUT another one, or roll back."
            reasons = tuple(reason_view(each) for each in inspected.reasons)
            raise Refusal(500, "READ_ERROR", message, reasons=reasons, lines=lines)
        return Read(bytes(inspected.json), lines)

    async def hashes(self, _call: Call) -> Answer:
        """Answer `GET /api/v1/config/hash`."""
        text = await persisted(self.configuration)
        status, source = self.configuration.status, hash_of(text)
        standing = self.configuration.standing(text)
        active = "" if status.active is None else status.active.hash
        latest = source if status.latest is None else status.latest.document_hash
        generated = {"active": active, "failed": latest, "pending": latest}.get(standing, source)
        rejection = status.last_rejection
        return told(
            Hashes(
                source,
                generated,
                active,
                standing,
                0 if status.active is None else status.active.version,
                None if rejection is None else attempt_view(rejection),
            ),
            lines=(etag_line(text),),
        )

    async def validate(self, call: Call) -> Answer:
        """Answer `POST /api/v1/config/validate`."""
        body = call.read(ValidateBody)
        text = body.yaml.encode()
        base = await self._serving() if body.compare_to_active else None
        return await self._validated(call, Inspect(text, base=base))

    async def validate_recipe(self, call: Call, recipe: bytes) -> Answer:
        """Say whether the persisted document would be served with a recipe written anew."""
        base = await persisted(self.configuration)
        return await self._validated(call, Inspect(recipe, base=base, recipe=""))

    async def _validated(self, call: Call, question: Inspect) -> Answer:
        inspected, checked = await self._examine(call, question)
        errors = _errors(inspected, checked)
        return told(
            Validation(
                "v1",
                not errors,
                inspected.yaml,
                errors,
                _warnings(inspected, checked),
                inspected.changes,
            )
        )

    async def plan(self, call: Call) -> Answer:
        """Answer `POST /api/v1/config/plan`."""
        body = call.read(PlanBody)
        candidate = encoded(body.yaml)
        text = await persisted(self.configuration)
        question = Inspect(candidate, mode=body.mode, base=text)
        inspected, checked = await self._examine(call, question)
        errors = _errors(inspected, checked)
        return told(
            Planned(
                body.mode,
                not errors,
                etag_of(text),
                etag_of(inspected.candidate),
                inspected.yaml,
                inspected.changes,
                checked.reused,
                tuple(reason_view(each) for each in checked.restarts),
                errors,
                _warnings(inspected, checked),
            ),
            lines=(etag_line(text),),
        )

    async def versions(self, _call: Call) -> Answer:
        """Answer `GET /api/v1/config/versions`."""
        try:
            records = await self.configuration.records()
        except DocumentFailed as error:
            raise Refusal(500, "READ_ERROR", f"The history cannot be read: {error}.") from None
        active = self.configuration.status.active
        version = 0 if active is None else active.version
        return told([_entry(record, version) for record in records])

    async def _examine(self, call: Call, question: Inspect) -> tuple[Inspected, Checked]:
        """Ask about a text that its author may only read about."""
        may_write = call.caller.may("config.write")
        known = b"" if may_write else await persisted(self.configuration)
        return await self.configuration.examine(
            msgspec.structs.replace(
                question, may_read_files=may_write, known=known, wants_yaml=True
            )
        )

    async def _serving(self) -> bytes | None:
        """Return the document that serves; the persisted one where no record has it."""
        active = self.configuration.status.active
        try:
            for record in await self.configuration.records():
                if active is not None and record.version == active.version:
                    found = await self.configuration.recorded(record.id)
                    return None if found is None else found.text
        except DocumentFailed:
            pass
        return await persisted(self.configuration)

    def _serving_lines(self) -> tuple[HeaderLine, ...]:
        active = self.configuration.status.active
        if active is None:
            return ()
        return (
            (b"x-vsr-config-version", b"%d" % active.version),
            (b"x-vsr-config-hash", active.hash.encode()),
        )


async def persisted(configuration: Configuration) -> bytes:
    """Return the persisted document.

    Raises:
        Refusal: it cannot be read.
    """
    try:
        return await configuration.read()
    except DocumentFailed as error:
        raise Refusal(500, "READ_ERROR", f"The document cannot be read: {error}.") from None


def hash_of(text: bytes) -> str:
    """Return the SHA-256 of a document alone, lower-case hex."""
    return hashlib.sha256(text).hexdigest()


def etag_of(text: bytes) -> str:
    """Return the ETag of a document."""
    return f'"{hash_of(text)}"'


def etag_line(text: bytes) -> HeaderLine:
    """Return the header line of it."""
    return b"etag", etag_of(text).encode()


def _errors(inspected: Inspected, checked: Checked) -> tuple[Finding, ...]:
    return tuple(finding(each) for each in (*inspected.reasons, *checked.reasons))


def _warnings(inspected: Inspected, checked: Checked) -> tuple[Finding, ...]:
    return tuple(finding(each, "warning") for each in (*inspected.warnings, *checked.restarts))


def _entry(record: Record, active: int) -> VersionEntry:
    # The date and time of its id, which are local.
    date, time = record.id[:8], record.id[9:15]
    return VersionEntry(
        record.id,
        f"{date[:4]}-{date[4:6]}-{date[6:]} {time[:2]}:{time[2:4]}:{time[4:]}",
        record.origin.source,
        f"config.{record.id}.yaml" if record.has_document else "",
        record.version,
        record.hash,
        record.origin.rollback_of,
        bool(record.version) and record.version == active,
    )
