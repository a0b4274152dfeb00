"""How plain YAML scalars are typed: the core schema of YAML 1.2, for reading and for writing."""

import re
from collections.abc import Sequence

import yaml

STR = "tag:yaml.org,2002:str"
INT = "tag:yaml.org,2002:int"
FLOAT = "tag:yaml.org,2002:float"
BOOL = "tag:yaml.org,2002:bool"
NULL = "tag:yaml.org,2002:null"
MERGE = "tag:yaml.org,2002:merge"
MAP = "tag:yaml.org,2002:map"
SEQ = "tag:yaml.org,2002:seq"

# A leading zero means octal to some readers and nothing to others: such a scalar stays text.
_INT = r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+"
_FLOAT = r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_SPECIAL_FLOAT = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
_BOOL = r"true|True|TRUE|false|False|FALSE"
_NULL = r"~|null|Null|NULL|"

INT_PATTERN = re.compile(_INT)
FLOAT_PATTERN = re.compile(_FLOAT)

Resolvers = dict[str | None, list[tuple[str, re.Pattern[str]]]]


def _core_schema() -> Resolvers:
    # PyYAML looks under a scalar's first character; the first hit counts.
    rules: list[tuple[str, str, Sequence[str | None]]] = [
        (NULL, _NULL, ["~", "n", "N", ""]),
        (BOOL, _BOOL, list("tTfF")),
        (INT, _INT, list("-+0123456789")),
        (FLOAT, f"{_FLOAT}|{_SPECIAL_FLOAT}", list("-+.0123456789")),
        (MERGE, "<<", ["<"]),
    ]
    table: Resolvers = {}
    for tag, pattern, firsts in rules:
        for first in firsts:
            table.setdefault(first, []).append((tag, re.compile(f"(?:{pattern})\\Z")))
    return table


class CoreLoader(yaml.CSafeLoader):
    """Composes nodes whose tags follow the core schema; never constructs an object."""

    yaml_implicit_resolvers: Resolvers = _core_schema()  # PyYAML's own attribute


class CoreDumper(yaml.SafeDumper):
    """Writes what `CoreLoader` reads back unchanged, and no anchors.

    Text that YAML 1.1 readers would take for something else (`yes`, `0123`, a date) is quoted
    too.
    """

    yaml_implicit_resolvers: Resolvers = {  # noqa: RUF012  # PyYAML's own attribute
        first: [
            *_core_schema().get(first, []),
            *yaml.SafeDumper.yaml_implicit_resolvers.get(first, []),
        ]
        for first in {*_core_schema(), *yaml.SafeDumper.yaml_implicit_resolvers}
    }

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # the base class's signature
        """Return True: a repeated value is written out."""
        return True
