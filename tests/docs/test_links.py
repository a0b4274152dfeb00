"""Links between our pages lead somewhere."""

from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, anchors, links, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    """A link to a file of ours finds it, and the heading if it names one."""
    broken = [target for target in links(page) if "://" not in target and not _leads(page, target)]

    assert broken == []


def test_every_page_of_docs_is_linked_from_the_index() -> None:
    """A page that nothing points to is not read."""
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}

    missing = {page for page in (ROOT / "docs").rglob("*.md") if page != index} - linked

    assert missing == set()


def _leads(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    return file.exists() and (not anchor or anchor in anchors(file))
