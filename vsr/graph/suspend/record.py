"""What a run keeps of its finished steps, so that it can be run again up to where it stopped.

Steps that only look at values, or that run other steps, are run again: their values need no
keeping, and variables get theirs anew. Kept is what a second run would not bring: the value of a
step that asks somebody, how the branches of a parallel step ended, and failures that time caused.
"""

from typing import Literal

import msgspec

from vsr.errors import GraphFailed, VsrError
from vsr.graph.kinds import Kind

Keeps = Literal["value", "failure", "nothing"]
"""What is kept of a step: both its value and its failure, its failure alone, or neither.

A node class says it as `keeps`; one that does not has its value kept.
"""


class KeptFailure(msgspec.Struct, frozen=True):
    """How a step failed."""

    message: str
    code: str
    status: int

    def error(self) -> GraphFailed:
        """Return the failure as an error like the one that it was made of."""
        error = GraphFailed(self.message, status=self.status)
        error.code = self.code  # type: ignore[misc]  # of this one alone
        return error


class _Kept(msgspec.Struct, frozen=True):
    values: dict[str, msgspec.Raw] = {}
    failures: dict[str, KeptFailure] = {}


class Record(msgspec.Struct, eq=False, gc=False):
    """Kept values and failures of one run by the path of their step."""

    values: dict[str, object] = {}
    """Of this run."""
    failures: dict[str, KeptFailure] = {}
    earlier: dict[str, msgspec.Raw] = {}
    """Values of the runs before this one, as JSON."""

    def has(self, path: str) -> bool:
        """Return whether a run before this one has kept the value of the step at `path`."""
        return path in self.earlier

    def value(self, path: str, kind: Kind) -> object:
        """Return the kept value of the step at `path`, which is of type `kind`.

        Raises:
            GraphFailed: it is not, as after an update.
        """
        try:
            return msgspec.json.decode(self.earlier[path], type=kind)
        except msgspec.ValidationError as error:
            raise GraphFailed("a kept value is not of its step's type") from error

    def note(self, path: str, value: object) -> None:
        """Keep a value."""
        self.values[path] = value

    def note_failure(self, path: str, error: VsrError) -> None:
        """Keep a failure."""
        self.failures[path] = KeptFailure(str(error), error.code, error.status)

    def encode(self) -> msgspec.Raw:
        """Return all that is kept as one JSON value.

        Raises:
            GraphFailed: a value cannot be written, which the compiler of graphs rules out.
        """
        try:
            made = {path: _raw(value) for path, value in self.values.items()}
        except (msgspec.MsgspecError, TypeError, ValueError) as error:
            raise GraphFailed("a step's value cannot be kept") from error
        return _raw(_Kept({**self.earlier, **made}, self.failures))


def decode_record(encoded: msgspec.Raw) -> Record:
    """Return the record of a run that goes on.

    Raises:
        GraphFailed: it is no record.
    """
    try:
        kept = msgspec.json.decode(encoded, type=_Kept)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise GraphFailed("what was kept of a run cannot be read") from error
    return Record(failures=kept.failures, earlier=kept.values)


def can_keep(kind: Kind) -> bool:
    """Return whether values of type `kind` can be kept."""
    try:
        msgspec.json.Decoder(kind)
        # A decoder takes a class that it cannot make; a schema does not.
        msgspec.json.schema(kind, schema_hook=_schema_of)
    except (TypeError, ValueError):
        return False
    return True


def _schema_of(cls: type) -> dict[str, object]:
    if cls is not object:
        raise TypeError
    return {"title": "anything"}


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
