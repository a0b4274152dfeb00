"""Changing the configuration: one change at a time, checked before anything is written.

Source of preconditions, codes and outcomes: standalone-mode 5.4.
"""

import re
from collections.abc import Awaitable, Callable

import attrs
import msgspec
from msgspec import UNSET

from vsr.admin.answer import Answer, Invalid, Refusal, told
from vsr.admin.call import Call, encoded
from vsr.admin.config_reads import etag_line, etag_of, hash_of, persisted
from vsr.admin.ports import Checked, Configuration, DocumentChanged, DocumentFailed
from vsr.admin.shapes import MAX_DIGITS, Deployed, RollbackBody, TextBody, attempt_view, reason_view
from vsr.config.attempt import Attempt, AttemptStatus, Code, Reason
from vsr.config.history import Document, Record
from vsr.config.inspection import Inspect, Mode
from vsr.config.origin import Origin, OriginSource
from vsr.config.record_ids import is_record_id

_TAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS = re.compile(rf"[ \t,]*{_TAG}[ \t]*(?:,[ \t]*(?:{_TAG}[ \t]*)?)*")
_ONE = re.compile(r'(W/)?("[^"]*")')


class Change(msgspec.Struct, frozen=True):
    """What is to be written."""

    document: Document
    origin: Origin
    invalid: str = "CONFIG_VALIDATION_ERROR"
    """Code of the refusal of a document that is not valid."""
    checked: Checked | None = None
    """None: nobody has looked at it yet."""


@attrs.define(eq=False)
class ConfigWrites:
    """Handlers that write the document."""

    configuration: Configuration
    _is_busy: bool = attrs.field(default=False, init=False)

    async def patch(self, call: Call) -> Answer:
        """Answer `PATCH /api/v1/config`."""
        text = text_of(call)

        async def merged(current: bytes) -> Change:
            question = Inspect(text, mode=Mode.MERGE, base=current, compares=False)
            return await self._looked_at(call, question)

        return await self.in_turn(call, merged)

    async def put(self, call: Call) -> Answer:
        """Answer `PUT /api/v1/config`."""
        text = text_of(call)

        async def whole(_current: bytes) -> Change:
            return await self._looked_at(call, Inspect(text))

        return await self.in_turn(call, whole)

    async def _looked_at(self, call: Call, question: Inspect) -> Change:
        inspected, checked = await self.configuration.examine(question)
        refuse(inspected.reasons, "CONFIG_VALIDATION_ERROR")
        document = Document(inspected.candidate)
        return Change(document, origin_of(call, OriginSource.API), checked=checked)

    async def rollback(self, call: Call) -> Answer:
        """Answer `POST /api/v1/config/rollback`."""
        body = call.read(RollbackBody)
        wanted = _wanted(body)

        async def recorded(_current: bytes) -> Change:
            record = _find(await self._records(), wanted)
            document = await self._document(record)
            origin = origin_of(call, OriginSource.ROLLBACK)
            origin = msgspec.structs.replace(origin, rollback_of=record.version)
            return Change(document, origin, "BACKUP_INVALID")

        return await self.in_turn(call, recorded)

    async def in_turn(self, call: Call, make: Callable[[bytes], Awaitable[Change]]) -> Answer:
        """Make a change and serve it, if nobody else is doing so.

        Args:
            call: what was asked.
            make: takes the persisted document, and returns what is to take its place.

        Raises:
            Refusal: it is not made.
        """
        if call.if_match is None:
            message = "If-Match must have the ETag of the document that is to be changed, or *."
            raise Refusal(428, "PRECONDITION_REQUIRED", message)
        if self._is_busy:
            raise Refusal(409, "DEPLOY_IN_PROGRESS", "Another change is in progress.")
        self._is_busy = True
        try:
            current = await persisted(self.configuration)
            if not _matches(call.if_match, current):
                raise _changed(412, current)
            change = await make(current)
            checked = change.checked or await self.configuration.check(change.document)
            refuse(checked.reasons, change.invalid)
            _refuse_restarts(checked)
            return await self._deploy(change, checked, current)
        finally:
            self._is_busy = False

    async def _deploy(self, change: Change, checked: Checked, current: bytes) -> Answer:
        try:
            kept = await self.configuration.keep(current)
        except DocumentFailed as error:
            message = f"The document that would be replaced cannot be kept: {error}."
            raise Refusal(500, "BACKUP_ERROR", message) from None
        document = change.document
        try:
            origin = change.origin
            attempt = await self.configuration.deploy(document, origin, current, checked)
        except DocumentChanged:
            raise _changed(409, await persisted(self.configuration)) from None
        except DocumentFailed as error:
            message = f"The document cannot be written: {error}."
            raise Refusal(500, "WRITE_ERROR", message) from None
        return _deployed(change, attempt, kept)

    async def _records(self) -> list[Record]:
        try:
            return await self.configuration.records()
        except DocumentFailed as error:
            raise Refusal(500, "READ_ERROR", f"The history cannot be read: {error}.") from None

    async def _document(self, record: Record) -> Document:
        if not record.has_document:
            message = "That version has no document: it came from where it stays."
            raise Refusal(409, "VERSION_HAS_NO_DOCUMENT", message)
        try:
            found = await self.configuration.recorded(record.id)
        except DocumentFailed as error:
            raise Refusal(500, "READ_ERROR", f"The history cannot be read: {error}.") from None
        if found is None:
            raise _unknown()
        return found


def text_of(call: Call) -> bytes:
    """Return the document, or the part of one, in a request's body.

    Raises:
        Invalid: it is none, or empty.
    """
    body = call.read(TextBody)
    return encoded(body.yaml)


def origin_of(call: Call, source: OriginSource) -> Origin:
    """Return what a change is told to come from."""
    return Origin(source, call.caller.principal, call.request_id)


def _matches(if_match: str, current: bytes) -> bool:
    """Return whether a precondition holds. Source: RFC 9110, 13.1.1: strong comparison.

    A list that is none holds for nothing.
    """
    if if_match.strip() == "*":
        return True
    if not _TAGS.fullmatch(if_match):
        return False
    wanted = etag_of(current)
    return any(not weak and tag == wanted for weak, tag in _ONE.findall(if_match))


def _changed(status: int, current: bytes) -> Refusal:
    message = "The document has changed since it was read; read it again."
    return Refusal(status, "CONFIG_CHANGED", message, lines=(etag_line(current),))


def _unknown() -> Refusal:
    return Refusal(404, "VERSION_NOT_FOUND", "The history has no such version.")


def refuse(reasons: tuple[Reason, ...], code: str) -> None:
    """Refuse a document that has faults.

    Raises:
        Refusal: there are reasons; `code` is that of a document that can be read.
    """
    if not reasons:
        return
    if any(each.code is Code.BUILD_FAILED for each in reasons):
        told = "; ".join(each.message for each in reasons)
        raise Refusal(500, "RUNTIME_SYNC_ERROR", f"The document cannot be looked at: {told}.")
    if code != "BACKUP_INVALID" and all(each.code is Code.INVALID_DOCUMENT for each in reasons):
        code = "YAML_PARSE_ERROR"
    message = "; ".join(
        f"{each.path}: {each.message}" if each.path else each.message for each in reasons
    )
    raise Refusal(400, code, message, reasons=tuple(reason_view(each) for each in reasons))


def _refuse_restarts(checked: Checked) -> None:
    if checked.restarts:
        reasons = tuple(reason_view(each) for each in checked.restarts)
        message = "; ".join(f"{each.path}: {each.message}" for each in checked.restarts)
        raise Refusal(409, "RESTART_REQUIRED", message, reasons=reasons)


def _wanted(body: RollbackBody) -> int | str:
    """Return the number of a version, or the id of a record.

    Raises:
        Invalid: both forms are given, or none, or one that is neither.
    """
    number, text = body.config_version, body.version
    if isinstance(number, int | float) and text is UNSET:
        if number >= 10**MAX_DIGITS:
            raise Invalid("config_version must be a version's number.")
        return int(number)
    if not isinstance(text, str) or number is not UNSET:
        raise Invalid("Name one of config_version and version.")
    if is_record_id(text):
        return text
    if text.isascii() and text.isdigit() and text[0] != "0" and len(text) <= MAX_DIGITS:
        return int(text)
    raise Invalid("version must be the id of a record, or a version's number.")


def _find(records: list[Record], wanted: int | str) -> Record:
    for record in records:
        if wanted == (record.id if isinstance(wanted, str) else record.version):
            return record
    raise _unknown()


def _deployed(change: Change, attempt: Attempt | None, kept: str) -> Answer:
    text = change.document.text
    status, outcome, standing, message = _outcome(attempt)
    return told(
        Deployed(
            outcome,
            kept,
            etag_of(text),
            standing,
            hash_of(text) if attempt is None else attempt.document_hash,
            message,
            None if attempt is None else attempt_view(attempt),
            0 if attempt is None else attempt.version,
            change.origin.rollback_of,
        ),
        status,
        (etag_line(text),),
    )


def _outcome(attempt: Attempt | None) -> tuple[int, str, str, str]:
    """Return the status of the answer, its outcome, how the activation stands, and a message."""
    if attempt is None:
        message = "The document is written; whether it serves is not known yet."
        return 202, "accepted", "pending", message
    match attempt.status:
        case AttemptStatus.ACTIVE:
            return 200, "success", "active", f"Version {attempt.version} serves."
        case AttemptStatus.FAILED:
            message = "The document is written and refused; the version before serves on."
            return 503, "activation_failed", "failed", f"{message} {attempt.text}"
        case _:
            message = "The document is written; a newer one took its place before it served."
            return 202, "accepted", "superseded", message
