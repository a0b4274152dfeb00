"""One document merged into another: `PATCH` of the management API, comments kept."""

import attrs
from ruamel.yaml.comments import CommentedMap

from vsr.config.load import load
from vsr.config.migrate.agreement import first_difference
from vsr.config.migrate.aliases import write_out
from vsr.config.migrate.comments import Comments
from vsr.config.migrate.round_trip import (
    Indents,
    RoundTripFailed,
    copied,
    dump,
    indents_of,
    is_null,
    parse,
)
from vsr.config.migrate.spots import TAIL
from vsr.config.report import Report


def merge_text(base: str, patch: str, *, file: str = "") -> str:
    """Return `base` with what `patch` says: maps merge, null deletes a key, all else replaces.

    What the patch says nothing of stands as it was written, comments and references included.

    Args:
        base: a document.
        patch: a mapping of the same layout.
        file: names `base` in problems; the patch is `patch`.

    Raises:
        ConfigRejected: one of them is no YAML mapping, or its YAML is so unusual that the result
            might say something else.

    Source: standalone-mode 5.4, of what merging means.
    """
    page, added = Page.of(base, file), Page.of(patch, "patch")
    _merge(page.root, added.root, page.comments)
    return page.text()


def _merge(into: CommentedMap, patch: CommentedMap, comments: Comments) -> None:
    for key, value in patch.items():
        mine = into.get(key)
        if value is None or is_null(value):
            _delete(into, key, comments)
        elif isinstance(value, CommentedMap) and isinstance(mine, CommentedMap):
            if value and not mine:
                mine.fa.set_block_style()
            _merge(mine, value, comments)
        else:
            _put(into, key, _without_nulls(copied(value)))


def _put(node: CommentedMap, key: str, value: object) -> None:
    """Set a key where it stands, or at the end; the library would keep the quotes of old texts."""
    at = list(node).index(key) if key in node else len(node)
    if key in node:
        del node[key]
    node.insert(at, key, value)


def _without_nulls(value: object) -> object:
    """Return a mapping that is new without the keys that would be deleted."""
    if isinstance(value, CommentedMap):
        for key, item in list(value.items()):
            if item is None or is_null(item):
                del value[key]
            else:
                _without_nulls(item)
    return value


def _delete(node: CommentedMap, key: str, comments: Comments) -> None:
    """Delete a key; its comments stay above the next one."""
    if key in node:
        names = list(node)
        following = names[names.index(key) + 1 :]
        comments.hand_down(node, key, node, next(iter(following), TAIL))
        del node[key]


@attrs.frozen
class Page:
    """A document that is edited: its tree, and what is to stand in it as it was written."""

    root: CommentedMap
    comments: Comments
    indents: Indents
    file: str
    """Names it in problems."""
    has_crlf: bool

    @classmethod
    def of(cls, text: str, file: str) -> "Page":
        """Return the page of a document, its aliases and merge keys written out.

        Raises:
            ConfigRejected: it is no YAML mapping, or its YAML is unusual.
        """
        root, comments = _tree(text, file), Comments()
        comments.attach(text.removeprefix("\ufeff").replace("\r\n", "\n"), root)
        indents = indents_of(root)
        write_out(root, comments)
        return cls(root, comments, indents, file, "\r\n" in text)

    def text(self) -> str:
        """Return it as it is now.

        Raises:
            ConfigRejected: the text might say something else.
        """
        try:
            dumped = dump(self.root, self.indents)
        except RoundTripFailed as error:
            raise _unusual(self.file).rejection() from error
        result = self.comments.written_into(dumped, self.root)
        if first_difference(self.root, result) is not None:
            raise _unusual(self.file).rejection()
        return result.replace("\n", "\r\n") if self.has_crlf else result


def _tree(text: str, file: str) -> CommentedMap:
    report = Report(file)
    loaded = load(text.encode("utf-8", "surrogatepass"), {}, report)
    if loaded and not isinstance(loaded.values, dict):
        report.add((), "must be a mapping", line=1)
    if loaded is None or report.has_problems():
        raise report.rejection()
    try:
        root = parse(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except RoundTripFailed as error:
        raise _unusual(file).rejection() from error
    if first_difference(root, text) is not None:
        raise _unusual(file).rejection()
    return root


def _unusual(file: str) -> Report:
    report = Report(file)
    mend = "use plainer YAML, or replace the whole document"
    report.add((), "can't be merged", "its YAML is unusual", mend, line=1)
    return report
