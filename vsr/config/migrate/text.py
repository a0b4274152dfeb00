"""From the text of an old document to the text of a canonical one."""

import re
from collections.abc import Callable

import attrs
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.constructor import DuplicateKeyError

from vsr.config.load import load
from vsr.config.migrate.agreement import first_difference
from vsr.config.migrate.aliases import write_out
from vsr.config.migrate.cards import migrate_cards
from vsr.config.migrate.comments import Comments
from vsr.config.migrate.completion import complete, migrate_version
from vsr.config.migrate.defaults import migrate_defaults
from vsr.config.migrate.draft import Draft, Place
from vsr.config.migrate.flat_models import migrate_flat_models
from vsr.config.migrate.global_blocks import migrate_global
from vsr.config.migrate.models import migrate_backends, migrate_models
from vsr.config.migrate.prompt_guard import migrate_prompt_guard
from vsr.config.migrate.response_cache import migrate_response_cache
from vsr.config.migrate.round_trip import Indents, RoundTripFailed, dump, indents_of, parse
from vsr.config.migrate.routing import migrate_routing
from vsr.config.migrate.targets import migrate_targets
from vsr.config.position import Path
from vsr.config.report import Report

_OTHER_LINE_BREAKS = re.compile("[\r\x85\u2028\u2029]")
"""To some YAML parsers they end a line, to others they don't."""

_STEPS: tuple[Callable[[Draft], None], ...] = (
    migrate_version,
    migrate_routing,
    migrate_flat_models,
    migrate_targets,
    migrate_models,
    migrate_defaults,
    migrate_backends,
    migrate_cards,
    migrate_global,
    migrate_response_cache,
    migrate_prompt_guard,
)
"""In this order: models are gathered before what belongs to each of them is rewritten."""


@attrs.frozen
class MigrationResult:
    """The canonical document."""

    text: str = attrs.field(repr=False)
    changes: tuple[str, ...]
    """What was changed, one line each with its path, in the order of the steps; never a value
    that could be a secret. Empty if the document was canonical already."""


def migrate_text(text: str, file: str = "") -> MigrationResult:
    """Return the document in `text` in the canonical layout, with its comments.

    A document that has nothing of an older layout is returned as it is. What is in no layout is
    kept where it stands, for the check of the result to report. References to environment
    variables stay as written.

    Args:
        text: of one YAML document.
        file: names it in problems.

    Raises:
        ConfigRejected: `text` is not a YAML mapping, or what it says is ambiguous.
    """
    report = Report(file)
    loaded = load(text.encode("utf-8", "surrogatepass"), {}, report)
    if loaded and not isinstance(loaded.values, dict):
        report.add((), "must be a mapping", line=1)
    if loaded is None or report.has_problems():
        raise report.rejection()
    report.lines = loaded.lines
    # Both are put back at the end.
    bare = text.removeprefix("\ufeff")
    plain = bare.replace("\r\n", "\n")
    draft = _draft(plain, report)
    indents = indents_of(draft.root.node)
    written_out = write_out(draft.root.node, draft.comments)
    for step in _STEPS:
        step(draft)
    if report.has_problems():
        raise report.rejection()
    if not draft.changes:
        return MigrationResult(text, ())
    complete(draft)
    if written_out:
        draft.note((), "aliases and merge keys are written out")
    result = _written(draft, indents)
    if plain != bare:
        result = result.replace("\n", "\r\n")
    return MigrationResult(text[: len(text) - len(bare)] + result, tuple(draft.changes))


def _draft(text: str, report: Report) -> Draft:
    other = _OTHER_LINE_BREAKS.search(text)
    if other:
        line = text.count("\n", 0, other.start()) + 1
        mend = "write it as an escape in double quotes"
        report.add((), "has a line break other than a newline", mend=mend, line=line)
        raise report.rejection()
    try:
        root = parse(text)
    except RoundTripFailed as error:
        cause = error.__cause__
        if isinstance(cause, DuplicateKeyError):
            # `load` lets only this key be given twice.
            line = cause.problem_mark.line + 1
            report.add((), "has two keys << in one mapping", mend="list both in one", line=line)
        else:
            # Not in the words of the error: they show values, which could be credentials.
            _refuse_unusual((), report)
        raise report.rejection() from error
    _refuse_difference(root, text, report)
    comments = Comments()
    comments.attach(text, root)
    return Draft(Place(root, ()), comments, report)


def _written(draft: Draft, indents: Indents) -> str:
    root = draft.root.node
    try:
        dumped = dump(root, indents)
    except RoundTripFailed as error:
        _refuse_unusual((), draft.report)
        raise draft.report.rejection() from error
    _refuse_difference(root, dumped, draft.report)
    result = draft.comments.written_into(dumped, root)
    _refuse_difference(root, result, draft.report)
    return result


def _refuse_difference(root: CommentedMap, text: str, report: Report) -> None:
    """Refuse a document of which a value would come out changed: a bug, but no damage."""
    path = first_difference(root, text)
    if path is not None:
        _refuse_unusual(path, report)
        raise report.rejection()


def _refuse_unusual(path: Path, report: Report) -> None:
    report.add(path, "can't be rewritten", "its YAML is unusual", "use plainer YAML there")
