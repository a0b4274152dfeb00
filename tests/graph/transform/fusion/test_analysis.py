"""Transformer `fusion_analysis`."""

import msgspec
import pytest

from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply
from vsr.graph.transform.fusion.analysis import (
    Findings,
    ReadFindings,
    findings_in,
    show_findings,
)
from vsr.graph.value import Failure, Inputs

INPUTS = Inputs(ChatBody({}))


def test_findings_are_the_known_keys_in_any_case() -> None:
    """Unknown keys are left out, missing ones stay missing, an empty list is a statement."""
    record = {"Consensus": ["x"], "blind_spots": [], "mood": 7, "contradictions": None, "raw": "y"}

    findings = findings_in(record)

    assert findings == Findings(consensus=("x",), blind_spots=())
    assert msgspec.json.encode(findings) == b'{"consensus":["x"],"blind_spots":[]}'


@pytest.mark.parametrize("content", ["{}", '{"mood": "good"}'])
def test_empty_record_is_readable(content: str) -> None:
    """A judge that found nothing has still done its work."""
    findings = ReadFindings(Reply("j", content))(INPUTS)

    assert findings == Findings()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "prose",
        "[]",
        '{"consensus": "x"}',
        '{"consensus": ["x"], "blind_spots": [7]}',
        '{"contradictions": {}}',
    ],
)
def test_unreadable_reply_is_kept_as_it_is(content: str) -> None:
    """The client may see what the judge said; its record says that it could not be read."""
    findings = ReadFindings(Reply("j", content, "{}"))(INPUTS)

    assert msgspec.to_builtins(findings) == {"raw": content, "parse_failed": True}


def test_analysis_reads_the_content() -> None:
    """Reasoning is no part of the record."""
    findings = ReadFindings(Reply("j", '{"consensus": ["x"]}', '{"blind_spots": ["y"]}'))(INPUTS)

    assert findings == Findings(consensus=("x",))


def test_analysis_is_read_through_what_judges_write_around_it() -> None:
    """A fence, a comma too many and prose before the object do no harm."""
    contents = ('```json\n{"consensus": ["x",]}\n```', 'Here it is: {"consensus": ["x"]}')

    for content in contents:
        assert ReadFindings(Reply("j", content))(INPUTS) == Findings(consensus=("x",))


def test_failed_analysis_is_no_analysis() -> None:
    """The run goes on without one, whatever the policy is."""
    assert ReadFindings(Failure("status 500", "upstream"))(INPUTS) is None
    assert ReadFindings(None)(INPUTS) is None


def test_findings_are_shown_indented() -> None:
    """A template gets the record as JSON, of an unreadable reply too; nothing for none."""
    assert show_findings(Findings(consensus=("x",))) == '{\n  "consensus": [\n    "x"\n  ]\n}'
    assert '"raw": "prose"' in show_findings(Findings(raw="prose", parse_failed=True))
    assert show_findings(None) == ""
