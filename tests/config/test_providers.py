"""The built-in providers, against the reference's table."""

import re

from tests.config.reference import reference_dir
from vsr.config.providers import CHAT, MESSAGES, PROVIDERS, RESPONSES, Provider

WORDS = {"C": CHAT, "R": RESPONSES, "M": MESSAGES}


def parse_row(row: str) -> tuple[str, Provider]:
    """Return the provider of one row of the table, as far as this version uses it."""
    name, url, protocols, differences = (cell.strip() for cell in row.strip("|").split("|"))
    marks = protocols.split()
    marks.sort(key=lambda mark: not mark.endswith("*"))
    header = re.search(r"auth header `([^`]+)`", differences)
    chat_path = re.search(r"(?:^|; )C create path `([^`]+)`", differences)
    version = re.search(r"headers `anthropic-version: ([^`]+)`", differences)
    return name.strip("`"), Provider(
        base_url=None if url == "—" else url.strip("`"),
        protocols=tuple(WORDS[mark.rstrip("*")] for mark in marks),
        auth_header=None if "no auth" in differences else header[1] if header else "Authorization",
        auth_prefix="" if "no prefix" in differences else "Bearer",
        headers={"anthropic-version": version[1]} if version else {},
        chat_path=chat_path[1] if chat_path else None,
        takes_api_version="`api-version` query" in differences,
    )


def test_providers_are_those_of_the_reference() -> None:
    """Each row of the reference's table, cell by cell."""
    text = (reference_dir() / "config-document.md").read_text()
    table = text[text.index("## Appendix A") : text.index("## Appendix B")]
    rows = [line for line in table.splitlines() if line.startswith("| `")]

    expected = dict(parse_row(row) for row in rows)

    assert expected == dict(PROVIDERS)
