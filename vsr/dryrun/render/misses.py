"""Expectations that do not hold, as a diff."""

import textwrap
from collections.abc import Iterable, Iterator

from vsr.dryrun.expect import Miss

_COLUMNS = 80


def render_misses(misses: Iterable[Miss]) -> str:
    """Return two lines for each: what was expected, and what came."""
    return "".join(f"{line}\n" for miss in misses for line in _lines(miss))


def _lines(miss: Miss) -> Iterator[str]:
    yield f"  {miss.what}"
    for sign, text in (("-", miss.expected), ("+", miss.got)):
        yield from textwrap.wrap(
            text, _COLUMNS, initial_indent=f"    {sign} ", subsequent_indent="      "
        )
