"""Warnings as a header."""

from vsr.codec.anthropic.protocol_warning import (
    MAX_HEADER_BYTES,
    ProtocolWarning,
    Reason,
    Severity,
    WarningLog,
    render_warnings,
)


def test_warnings_are_rendered_in_order() -> None:
    """Severity, reason and field; separators and what no header may hold are escaped."""
    log = WarningLog()
    log.info(Reason.TOOL_RESULT_IS_ERROR, "messages[0].content[1].is_error")
    log.lossy(Reason.DROPPED, "a,b;c\r\nd\x00é%")
    log.error(Reason.MISSING_NAME, "tools[0].name")

    assert render_warnings(log.warnings) == (
        "info;tool_result_is_error;messages[0].content[1].is_error,"
        "lossy;dropped;a%2Cb%3Bc%0D%0Ad%00%C3%A9%,"
        "error;missing_name;tools[0].name"
    )
    assert render_warnings([]) == ""


def test_warnings_over_the_limit_are_counted() -> None:
    """What fits stands whole; the last entry says how many do not."""
    entry = ProtocolWarning(Severity.LOSSY, Reason.DROPPED, "x" * 86)
    size_bytes = len(str(entry)) + 1

    fitting = render_warnings([entry] * 40)
    cut = render_warnings([entry] * 60)

    assert size_bytes * 40 <= MAX_HEADER_BYTES
    assert fitting.count("dropped") == 40
    kept = (MAX_HEADER_BYTES + 1) // size_bytes
    assert cut == ",".join([str(entry)] * kept + [f"error;warnings_truncated;count={60 - kept}"])


def test_long_field_is_cut() -> None:
    """A client names members as it likes."""
    warning = ProtocolWarning(Severity.LOSSY, Reason.DROPPED, "x" * 5000)

    assert len(render_warnings([warning])) < 300
