"""A corpus: cases and what each must come to, as two YAML texts."""

from collections.abc import Mapping

import msgspec
import yaml

from vsr.routing.parity.body_diff import BodyRule, Difference
from vsr.routing.parity.case import Case, read_cases
from vsr.routing.parity.diff import differences
from vsr.routing.parity.normalize import normalized
from vsr.routing.parity.record import Record
from vsr.routing.parity.result import CaseResult, Variant, joined, result_of

REWRITTEN = "# What each case of cases.yaml comes to. Rewritten by:"
"""Head of an `expected.yaml` that a command wrote."""
_WIDE = 1_000_000
"""Line width of a YAML text in which no body is folded."""


class Judge(msgspec.Struct, frozen=True):
    """What a record must equal."""

    expected: CaseResult
    rule: BodyRule = BodyRule.AS_JSON
    accepts_variants: bool = False

    def differences(self, record: Record, *, is_cut_anew: bool = False) -> list[Difference]:
        """Return where `record` differs from what is expected, nearest variant counted.

        Args:
            record: as a driver filled it in.
            is_cut_anew: a streamed response did not arrive in the chunks of the case, so only
                what was delivered altogether counts.
        """
        got = result_of(record)
        accepted = [self.expected]
        if self.accepts_variants:
            accepted += [_with_variant(self.expected, each) for each in self.expected.variants]
        if is_cut_anew:
            got, accepted = joined(got), [joined(wanted) for wanted in accepted]
        got = normalized(got)
        found = [differences(normalized(wanted), got, self.rule) for wanted in accepted]
        return min(found, key=len)


class Corpus(msgspec.Struct, frozen=True):
    """Cases by name, and what each must come to, under the same names."""

    cases: Mapping[str, Case]
    expected: Mapping[str, CaseResult]


def read_corpus(cases: str, expected: str) -> Corpus:
    """Return the corpus of a `cases.yaml` and an `expected.yaml`.

    Raises:
        ValueError: a text has another form, or the two do not name the same cases.
    """
    by_name = read_cases(cases)
    results = msgspec.convert(yaml.safe_load(expected), dict[str, CaseResult])
    unpaired = by_name.keys() ^ results.keys()
    if unpaired:
        raise ValueError(f"only in one of the two files: {', '.join(sorted(unpaired))}")
    return Corpus(by_name, results)


def render_expected(results: Mapping[str, CaseResult], command: str) -> str:
    """Return the `expected.yaml` that pins `results`; its head names the command that wrote it."""
    values = {name: msgspec.to_builtins(normalized(result)) for name, result in results.items()}
    return f"{REWRITTEN} {command}\n" + yaml.dump(
        values,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None,
        width=_WIDE,
        allow_unicode=True,
    )


def _text_node(dumper: yaml.representer.BaseRepresenter, text: str) -> yaml.ScalarNode:
    """Return `text` on one line, its line ends as escapes."""
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if "\n" in text else None
    )


class _Dumper(yaml.SafeDumper):
    yaml_representers = {**yaml.SafeDumper.yaml_representers, str: _text_node}  # noqa: RUF012  # typed where it is declared


def _with_variant(expected: CaseResult, variant: Variant) -> CaseResult:
    """Return `expected` with the variant's text at every place that it replaces."""
    values = msgspec.to_builtins(expected)
    for path in variant.replaces:
        *parents, name = path.split(".")
        place = values
        for parent in parents:
            place = place[parent]
        place[name] = variant.value
    return msgspec.convert(values, CaseResult)
