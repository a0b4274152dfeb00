"""The page about the endpoints."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from tests.fakes.configuration import Desk, Got


class Page(HTMLParser):
    """What a page has."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: list[str] = []
        self.links: list[str] = []
        self.styles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        self.tags.append(tag)
        fields = dict(attrs)
        self.names += [fields["id"] or ""] if "id" in fields else []
        self.links += [fields["href"] or ""] if "href" in fields else []
        assert not {"src", "style", "onclick"} & set(fields)

    def handle_data(self, data: str) -> None:
        """Collect the style."""
        if self.tags[-1:] == ["style"]:
            self.styles.append(data)


@pytest.fixture
async def got() -> Got:
    """Return the page."""
    return await Desk().ask("GET", "/docs")


async def test_page_tells_of_every_endpoint(got: Got) -> None:  # noqa: ASYNC124  # its fixture is
    """With what it takes and says."""
    text = got.body.decode()

    assert (got.status, got.lines[b"content-type"]) == (200, b"text/html; charset=utf-8")
    for route in Desk().app.routes:
        assert f"<code>{route.path}</code>" in text
        assert route.permission in text
    assert "1.2.3" in text


async def test_links_lead_somewhere_on_the_page(got: Got) -> None:  # noqa: ASYNC124  # its fixture is
    """But for the one to the document itself."""
    page = Page()
    page.feed(got.body.decode())

    assert {link.removeprefix("#") for link in page.links} - set(page.names) == {"/openapi.json"}
    assert len(page.names) == len(set(page.names))


async def test_page_brings_all_that_it_needs_and_runs_nothing(got: Got) -> None:  # noqa: ASYNC124  # its fixture is
    """The policy permits its own style, by its hash, and nothing else."""
    page = Page()
    page.feed(got.body.decode())
    [style] = page.styles
    policy = got.lines[b"content-security-policy"].decode()

    assert not {"script", "link", "img", "iframe", "form"} & set(page.tags)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"https?://|url\(|@import", got.body.decode())
