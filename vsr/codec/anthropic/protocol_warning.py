"""What a translation could not carry, as clients are told in `x-vsr-protocol-warnings`.

Source: the reference's rules "Headers on upstream responses" and "Warning reasons".
"""

from collections.abc import Iterable
from enum import StrEnum
from urllib.parse import quote

import msgspec

MAX_HEADER_BYTES = 4096

_UNESCAPED = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in ",;")
# Besides the separators and line breaks, which the reference escapes: what no header can hold.
_MAX_FIELD_CHARACTERS = 200


class Severity(StrEnum):
    """How much is lost."""

    INFO = "info"
    LOSSY = "lossy"
    ERROR = "error"


class Reason(StrEnum):
    """Why it is lost; stable names."""

    DROPPED = "dropped"
    UNSUPPORTED_TYPE = "unsupported_type"
    UNSUPPORTED_ROLE = "unsupported_role"
    UNSUPPORTED_BLOCK_TYPE = "unsupported_block_type"
    UNSUPPORTED_IMAGE_SOURCE = "unsupported_image_source"
    UNSUPPORTED_TOOL_CHOICE = "unsupported_tool_choice"
    UNSUPPORTED_TOOL_RESULT_PART = "unsupported_tool_result_part"
    MISSING_SOURCE = "missing_source"
    INCOMPLETE_BASE64 = "incomplete_base64"
    MISSING_URL = "missing_url"
    MISSING_FILE_ID = "missing_file_id"
    IMAGE_FILE_ID_UNRESOLVED = "image_file_id_unresolved"
    MISSING_TOOL_USE_ID = "missing_tool_use_id"
    TOOL_RESULT_IS_ERROR = "tool_result_is_error"
    TOOL_RESULT_IMAGE_DROPPED = "tool_result_image_dropped"
    TOOL_RESULT_DOCUMENT_DROPPED = "tool_result_document_dropped"
    INCOMPLETE_TOOL_USE = "incomplete_tool_use"
    MISSING_NAME = "missing_name"
    INVALID_SCHEMA = "invalid_schema"
    SERVER_TOOL_CAPTURED = "server_tool_captured"
    SERVER_TOOL_USE_CAPTURED = "server_tool_use_captured"
    SIGNATURE_DROP = "signature_drop_on_openai_backend"
    SERVER_TOOL_DROP = "server_tool_drop_on_openai_backend"
    TOP_K_DROP = "top_k_drop_on_openai_backend"
    BETA_DROP = "beta_drop_on_openai_backend"
    CACHE_FIELDS_ABSENT = "cache_fields_absent"
    STOP_REASON_COERCED = "anthropic_stop_reason_coerced"
    WARNINGS_TRUNCATED = "warnings_truncated"


class ProtocolWarning(msgspec.Struct, frozen=True):
    """One thing that the other protocol has no place for."""

    severity: Severity
    reason: Reason
    field: str
    """Path in the body translated from, as in `messages[1].content[0].type`."""

    def __str__(self) -> str:
        field = quote(self.field[:_MAX_FIELD_CHARACTERS], safe=_UNESCAPED)
        return f"{self.severity};{self.reason};{field}"


def render_warnings(warnings: Iterable[ProtocolWarning]) -> str:
    """Return the header's value: the first entry at least, and how many the limit cut off."""
    entries = [str(warning) for warning in warnings]
    size_bytes = 0
    for at, entry in enumerate(entries):
        size_bytes += len(entry.encode()) + (1 if at else 0)
        if size_bytes > MAX_HEADER_BYTES and at:
            count = f"count={len(entries) - at}"
            cut = ProtocolWarning(Severity.ERROR, Reason.WARNINGS_TRUNCATED, count)
            return ",".join((*entries[:at], str(cut)))
    return ",".join(entries)


class WarningLog:
    """Collects warnings in the order in which they are met."""

    def __init__(self) -> None:
        self.warnings: list[ProtocolWarning] = []

    def info(self, reason: Reason, field: str) -> None:
        """Note what has no effect on the answer."""
        self.warnings.append(ProtocolWarning(Severity.INFO, reason, field))

    def lossy(self, reason: Reason, field: str) -> None:
        """Note what the backend or the client will not see."""
        self.warnings.append(ProtocolWarning(Severity.LOSSY, reason, field))

    def error(self, reason: Reason, field: str) -> None:
        """Note what is malformed, and therefore left out."""
        self.warnings.append(ProtocolWarning(Severity.ERROR, reason, field))
