"""The parts of our Markdown pages that tests look at."""

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^```(?P<info>[^`\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(?P<title>.+)$", re.MULTILINE)
_NOT_IN_ANCHOR = re.compile(r"[^\w\- ]")


@attrs.frozen
class Block:
    """One fenced block."""

    place: str
    """Page and line, for the test's name."""
    info: str
    """What stands behind the opening fence: a language and maybe a mark of ours."""
    text: str = attrs.field(repr=False)
    following: str = attrs.field(repr=False)
    """Text of the next block of the page, empty if there is none."""


def pages() -> list[Path]:
    """Return every page that we write, in the order of their paths."""
    found = [*ROOT.glob("*.md")]
    for folder in ("bench", "container", "docs", "fixtures", "graphs", "kubernetes", "tests"):
        found += (ROOT / folder).rglob("*.md")
    return sorted(found)


def blocks(info: str) -> list[Block]:
    """Return the blocks of all pages whose opening fence says exactly `info`."""
    return [block for page in pages() for block in _blocks(page) if block.info == info]


def links(page: Path) -> list[str]:
    """Return the targets of the links on `page`, code aside."""
    return [match["target"] for match in _LINK.finditer(_prose(page))]


def anchors(page: Path) -> set[str]:
    """Return what a link may name behind `#`. Source: how GitHub makes anchors of headings."""
    titles = [match["title"] for match in _HEADING.finditer(_prose(page))]
    return {_NOT_IN_ANCHOR.sub("", title.lower()).replace(" ", "-") for title in titles}


def rows(page: Path) -> list[tuple[str, str]]:
    """Return the rows of all tables that begin with a code span, each behind that span's text."""
    lines = _prose(page).splitlines()
    return [(line.split("`")[1], line) for line in lines if line.startswith("| `")]


def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    texts = [*(match["text"] for match in found), ""]
    for at, match in enumerate(found):
        line = text.count("\n", 0, match.start()) + 1
        place = f"{page.relative_to(ROOT).as_posix()}:{line}"
        yield Block(place, match["info"].strip(), texts[at], following=texts[at + 1])
