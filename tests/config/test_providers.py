"""The built-in providers, against the reference's table."""

import re

import pytest

from tests.config.reference import reference_dir
from vsr.config.providers import (
    CHAT,
    INJECTION_HEADERS,
    MESSAGES,
    PROVIDERS,
    REASONING_TRANSPORTS,
    RESPONSES,
    Provider,
)
from vsr.config.reasoning_families import REASONING_FAMILIES
from vsr.resources.reasoning import ReasoningFamily, ReasoningKind, ReasoningMode

WORDS = {"C": CHAT, "R": RESPONSES, "M": MESSAGES}


def parse_row(row: str) -> tuple[str, Provider]:
    """Return the provider of one row of the table, as far as this version uses it."""
    name, url, protocols, differences = (cell.strip() for cell in row.strip("|").split("|"))
    marks = protocols.split()
    marks.sort(key=lambda mark: not mark.endswith("*"))
    header = re.search(r"auth header `([^`]+)`", differences)
    responses_path = re.search(r"(?:^|; )R create path `([^`]+)` absolute", differences)
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
        responses_path=responses_path[1] if responses_path else None,
    )


def table_rows(start: str, end: str | None) -> list[str]:
    """Return the rows of one appendix of the reference's page."""
    text = (reference_dir() / "config-document.md").read_text(encoding="utf-8")
    table = text[text.index(start) : text.index(end) if end else None]
    return [line for line in table.splitlines() if line.startswith("| `")]


def provider_rows() -> list[str]:
    """Return the rows of the table of providers."""
    return table_rows("## Appendix A", "## Appendix B")


def marked(row: str, mark: str) -> str | None:
    """Return what stands in backticks behind a mark."""
    found = re.search(rf"{mark} `([^`]+)`", row)
    return found[1] if found else None


def test_providers_are_those_of_the_reference() -> None:
    """Each row of the reference's table, cell by cell."""
    expected = dict(parse_row(row) for row in provider_rows())

    assert expected == dict(PROVIDERS)


def test_injection_headers_and_transports_are_those_of_the_reference() -> None:
    """What the same table says about users' own keys and about reasoning."""
    headers = {row.split("`")[1]: marked(row, "inj") for row in provider_rows()}
    transports = {row.split("`")[1]: marked(row, "reasoning") for row in provider_rows()}

    assert {name: found for name, found in headers.items() if found} == INJECTION_HEADERS
    assert {name: found for name, found in transports.items() if found} == REASONING_TRANSPORTS


KINDS = {
    "T": ReasoningKind.CHAT_TEMPLATE_KWARGS,
    "E": ReasoningKind.REASONING_EFFORT,
    "M": ReasoningKind.REASONING_MODE,
}
MODES = {"e": ReasoningMode.ENABLED, "d": ReasoningMode.DISABLED, "a": ReasoningMode.ADAPTIVE}


def parse_family(row: str) -> tuple[str, ReasoningFamily]:
    """Return the family of one row of the table."""
    name, control, levels, modes, other = (cell.strip() for cell in row.strip("|").split("|"))
    words, _, default = levels.rstrip(")").partition(" (")
    known = tuple(words.split(", ")) if words != "—" else ()
    flag = re.search(r"flags (\w+)→`(\w+)`", other)
    return name.strip("`"), ReasoningFamily(
        KINDS[control[0]],
        control.split("`")[1],
        levels=known,
        default_level=default if default in known else None,
        modes=tuple(MODES[letter] for letter in modes.split()),
        default_mode=MODES[modes[0]],
        activation_parameter=marked(other, "activation"),
        effort_flags={flag[1]: flag[2]} if flag else {},
        disabled_level=marked(other, "off"),
    )


def test_reasoning_families_are_those_of_the_reference() -> None:
    """Each row of the reference's table, cell by cell."""
    expected = dict(parse_family(row) for row in table_rows("## Appendix B", None))

    assert len(expected) == 42
    assert expected == dict(REASONING_FAMILIES)


@pytest.mark.parametrize(
    ("name", "may_disable"),
    [("qwen3", True), ("kimi-k2-always-on", False), ("glm-5.2", True), ("gpt-oss", False)],
)
def test_family_without_a_way_out_always_reasons(name: str, may_disable: bool) -> None:  # noqa: FBT001  # parametrised
    """A mode, a switch or a level turns reasoning off."""
    assert REASONING_FAMILIES[name].may_disable is may_disable
