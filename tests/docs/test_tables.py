"""The tables on our pages say what the code says."""

import inspect

import pytest

from tests.docs.markdown import ROOT, rows
from vsr import errors
from vsr.config.not_served import NOT_SERVED_KEYS, NOT_SERVED_VALUES
from vsr.config.providers import PROVIDERS
from vsr.telemetry.access_log import AccessLine

DOCS = ROOT / "docs"

ERRORS = [
    error
    for _, error in inspect.getmembers(errors, inspect.isclass)
    if issubclass(error, errors.VsrError)
    if error not in {errors.VsrError, errors.UpstreamFailure}
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_errors_page_tells_status_type_code_and_flag(error: type[errors.VsrError]) -> None:
    """What a client may branch on is documented as it is."""
    row = dict(rows(DOCS / "errors.md"))[error.__name__]
    code = "invalid_request" if error is errors.InvalidRequest else error.code
    wanted = [str(error.status), error.type, code]

    cells = [cell.strip(" `") for cell in row.strip("|").split("|")][1:5]

    assert cells == [*wanted, "" if error.flag == "-" else error.flag]


def test_errors_page_has_no_other_rows() -> None:
    """An error that was taken out leaves the page too."""
    names = {name for name, _ in rows(DOCS / "errors.md")}

    assert names == {error.__name__ for error in ERRORS}


def test_operations_page_tells_every_field_of_the_access_log() -> None:
    """Whoever reads the log finds each field explained, in the log's order."""
    fields = list(AccessLine.__struct_fields__)

    told = [name for name, _ in rows(DOCS / "operations.md") if name in fields]

    assert told == fields


@pytest.mark.parametrize("table", [NOT_SERVED_KEYS, NOT_SERVED_VALUES], ids=["keys", "values"])
def test_configuration_page_names_what_is_refused(table: dict[str, frozenset[str]]) -> None:
    """A user reads there what this version does not serve, before the Router says so."""
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")

    missing = {word for words in table.values() for word in words if f"`{word}`" not in page}

    assert missing == set()


def test_configuration_page_names_every_provider() -> None:
    """The list of providers is the code's."""
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")

    assert [name for name in PROVIDERS if f"`{name}`" not in page] == []
