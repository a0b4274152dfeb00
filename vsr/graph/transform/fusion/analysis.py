"""Transformer `fusion_analysis`: what a judge found when it compared the panel's replies."""

from collections.abc import Mapping

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.codec.tolerant_json import NoJsonObject, read_as
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Failure, Inputs
from vsr.registry import Extension


class Findings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The judge's comparison; what it left out is None. The client's record shows it so.

    Source: looper-algorithms 9.2, step 5.
    """

    consensus: tuple[str, ...] | None = None
    contradictions: tuple[str, ...] | None = None
    partial_coverage: tuple[str, ...] | None = None
    unique_insights: tuple[str, ...] | None = None
    blind_spots: tuple[str, ...] | None = None
    raw: str | None = None
    """The whole reply, where it could not be read."""
    parse_failed: bool = False


KEYS = tuple(name for name in Findings.__struct_fields__ if name not in {"raw", "parse_failed"})


@attrs.frozen
class ReadFindings:
    """Reads the judge's reply; a comparison that failed is none, and the run goes on."""

    reply: Reply | Failure | None

    def __call__(self, inputs: Inputs, /) -> Findings | None:
        """Return the findings, None if there was no reply."""
        del inputs
        if not isinstance(self.reply, Reply):
            return None
        content = self.reply.content
        return _read_findings(content) or Findings(raw=content, parse_failed=True)


def findings_in(record: Mapping[str, object]) -> Findings:
    """Return what a JSON object says; the case of its keys is no matter, and others are ignored.

    Raises:
        msgspec.ValidationError: a known key is not a list of strings.
    """
    lowered = {key.lower(): value for key, value in record.items()}
    return msgspec.convert({key: lowered.get(key) for key in KEYS}, Findings)


def show_findings(findings: Findings | None) -> str:
    """Return indented JSON for a prompt, empty for none."""
    if findings is None:
        return ""
    return msgspec.json.format(msgspec.json.encode(findings), indent=2).decode()


def _read_findings(content: str) -> Findings | None:
    try:
        return read_as(findings_in, content)
    except NoJsonObject:
        return None


FUSION_ANALYSIS = Extension[Transformer](name="fusion_analysis", config=ReadFindings)
