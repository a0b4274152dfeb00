"""Checks of `reliability`, of models and of the layers above them."""

from collections.abc import Iterator, Sequence

import msgspec

from vsr.config.checks import suggestion
from vsr.config.compile.reliability import DEFAULT_BACK_OFF, has_retry_policy, retry_tokens
from vsr.config.document.decisions import DecisionReliability
from vsr.config.document.providers import Reliability
from vsr.config.document.root import Document
from vsr.config.environment import Expanded
from vsr.config.position import Path
from vsr.config.quantities import parse_duration_s
from vsr.config.report import Report
from vsr.config.validate.layers import profiles_of
from vsr.config.validate.models import MODELS
from vsr.resources.reliability import RetryOn

Block = Reliability | DecisionReliability

_RETRY_KEYS = (
    "retry_on",
    "retriable_status_codes",
    "retry_back_off_base",
    "retry_back_off_max",
    "retry_after_max",
)
"""What only a retry policy has."""
_CONDITIONS = frozenset(str(each) for each in RetryOn)
_LISTED = str(RetryOn.RETRIABLE_STATUS_CODES)


def check_reliability(document: Document, report: Report) -> None:
    """Report every fault in the reliability of models, entrypoints, recipes and decisions."""
    models = document.providers.models
    blocks = list(_blocks(document))
    layers = _Codes.of([block for _, block in blocks])
    everywhere = layers.and_those_of([model.reliability for model in models])
    for at, model in enumerate(models):
        _check_model(model.reliability, (*MODELS, at, "reliability"), layers, report)
    for path, block in blocks:
        check_retries(block, path, report)
        _check_codes(block, path, everywhere, report)


def _blocks(document: Document) -> Iterator[tuple[Path, DecisionReliability]]:
    """Return the block of every layer above the models."""
    owners: list[tuple[Path, DecisionReliability | None]] = [
        (("entrypoints", at), each.reliability) for at, each in enumerate(document.entrypoints)
    ]
    for path, routing in profiles_of(document):
        owners.append((path, routing.reliability))
        owners += [
            ((*path, "decisions", at), each.reliability)
            for at, each in enumerate(routing.decisions)
        ]
    for path, block in owners:
        if block is not None:
            yield (*path, "reliability"), block


class _Codes(msgspec.Struct, frozen=True):
    """What some blocks together say of retriable statuses; one half may be in another block."""

    are_listed: bool
    are_wanted: bool
    """Whether a condition asks for them."""

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> "_Codes":
        """Return what `blocks` say."""
        return cls(
            are_listed=any(block.retriable_status_codes for block in blocks),
            are_wanted=any(_LISTED in retry_tokens(block.retry_on) for block in blocks),
        )

    def and_those_of(self, blocks: Sequence[Block]) -> "_Codes":
        """Return what these and `blocks` say."""
        others = _Codes.of(blocks)
        return _Codes(
            are_listed=self.are_listed or others.are_listed,
            are_wanted=self.are_wanted or others.are_wanted,
        )


def _check_model(reliability: Reliability, path: Path, layers: _Codes, report: Report) -> None:
    check_retries(reliability, path, report)
    if has_retry_policy(reliability):
        _check_codes(reliability, path, layers, report)
    else:
        for key in _RETRY_KEYS:
            if report.lines.has((*path, key)):
                what = "has no effect: the model makes no retries"
                mend = "set retry_count, or say it where retries are set"
                report.warn((*path, key), what, mend)
    _check_ejection(reliability, path, report)
    _check_health_path(reliability.health_check_path, (*path, "health_check_path"), report)
    budget = (reliability.retry_budget_percent, reliability.retry_budget_min_concurrency)
    if report.lines.has((*path, "max_retries")) and budget != (None, None):
        what = "has no effect: the retry budget takes its place"
        report.warn((*path, "max_retries"), what, "keep one of the two")


def check_retries(block: Block, path: Path, report: Report) -> None:
    """Check the retries of one block by itself."""
    base, maximum = block.retry_back_off_base, block.retry_back_off_max
    keys = ((*path, "retry_back_off_base"), (*path, "retry_back_off_max"))
    is_readable = not any(report.is_broken(key) for key in keys)
    # Without a first wait of its own a block most likely changes the default one.
    first = base or DEFAULT_BACK_OFF
    if maximum is not None and is_readable and parse_duration_s(maximum) < parse_duration_s(first):
        why = f"the base is {first}"
        report.add(keys[1], "is shorter than retry_back_off_base", why, "make it at least that")
    if block.retry_on is not None:
        _check_conditions(block.retry_on, (*path, "retry_on"), report)


def _check_conditions(retry_on: str, path: Path, report: Report) -> None:
    """Each word is a condition; others are no fault, since Envoy ignores them."""
    words = retry_tokens(retry_on)
    if not words:
        why = "it names no condition"
        report.add(path, "is blank", why, "write connect-failure,refused-stream")
    for word in words:
        if word not in _CONDITIONS:
            # What the environment gave is not shown.
            is_given = isinstance(report.lines.value(path), Expanded)
            shown = f"a word of {report.quote(path)}" if is_given else repr(word)
            what = f"{shown} has no effect: it is no retry condition"
            report.warn(path, what, suggestion(word, _CONDITIONS))


def _check_codes(block: Block, path: Path, others: _Codes, report: Report) -> None:
    """Listed statuses and the condition that asks for them go together.

    Source: the reference's retry decision, where either alone does nothing.
    """
    is_wanted = _LISTED in retry_tokens(block.retry_on)
    codes = block.retriable_status_codes
    if codes and not is_wanted and not others.are_wanted:
        what = f"has no effect: retry_on does not name {_LISTED}"
        report.warn((*path, "retriable_status_codes"), what, "add it there")
    if is_wanted and not codes and not others.are_listed:
        what = f"{_LISTED!r} has no effect: no status is listed"
        report.warn((*path, "retry_on"), what, "list some under retriable_status_codes")


def _check_ejection(reliability: Reliability, path: Path, report: Report) -> None:
    place = (*path, "base_ejection_time")
    is_used = reliability.consecutive_5xx > 0 and not report.is_broken(place)
    if is_used and not parse_duration_s(reliability.base_ejection_time):
        report.add(
            place, "must be longer than 0s", "consecutive_5xx ejects backends", "lengthen it"
        )
    if not reliability.max_ejection_percent:
        what = "has no effect: 0 means the default, 50"
        report.warn(
            (*path, "max_ejection_percent"), what, "leave consecutive_5xx out to eject none"
        )


def _check_health_path(text: str | None, path: Path, report: Report) -> None:
    if text is None or report.is_broken(path):
        return
    if not text.startswith("/"):
        report.add(path, "is not a path", mend="begin it with /")
    elif not text.isascii() or not text.isprintable() or " " in text:
        why = "it holds a blank, a control character or a letter beyond ASCII"
        report.add(path, "is not a path", why, "write such characters like %20")
