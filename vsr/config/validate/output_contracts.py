"""Checks of the form that an answer must have."""

from collections.abc import Iterator

from vsr.config.document.output_contracts import OutputContractSpec
from vsr.config.position import Path
from vsr.config.report import Report

_SCHEMA = "terminal_action_v1"


def check_output_contract(spec: OutputContractSpec, path: Path, report: Report) -> None:
    """The blocks are those of the type, and complete."""
    for key, what, mend in (*_by_type(spec), *_of_postprocess(spec), *_of_extract(spec)):
        report.add((*path, *key), what, mend=mend)


def _by_type(spec: OutputContractSpec) -> Iterator[tuple[Path, str, str]]:
    match spec.type:
        case "choice":
            yield from _choice(spec)
        case "structured_json":
            if spec.json_schema is None or spec.json_schema.schema_ref != _SCHEMA:
                yield ("json_schema", "schema_ref"), f"must be {_SCHEMA}", f"write {_SCHEMA}"
        case "reference_selection":
            yield from _reference(spec)
        case None:
            pass


def _of_postprocess(spec: OutputContractSpec) -> Iterator[tuple[Path, str, str]]:
    if spec.type is None and not spec.postprocess:
        mend = "write choice, structured_json or reference_selection"
        yield ("type",), "is missing", mend
    for at, step in enumerate(spec.postprocess):
        if step.type is None:
            mend = "write dereference_selected_reference"
            yield ("postprocess", at, "type"), "is missing", mend
    if spec.postprocess and spec.type not in {None, "reference_selection"}:
        yield ("postprocess",), "needs the type reference_selection", "remove it"


def _reference(spec: OutputContractSpec) -> Iterator[tuple[Path, str, str]]:
    if spec.reference is None:
        yield ("reference",), "is missing", "say where references come from"


def _choice(spec: OutputContractSpec) -> Iterator[tuple[Path, str, str]]:
    values = () if spec.choice_set is None else spec.choice_set.values
    if not values:
        yield ("choice_set", "values"), "is missing or empty", "list the choices"
    if not all(value.strip() for value in values):
        yield ("choice_set", "values"), "has a blank one", "remove it"
    if len({value.casefold() for value in values}) != len(values):
        yield ("choice_set", "values"), "names one twice, case aside", "keep one of the two"
    render = spec.render
    if (
        render is not None
        and render.mode == "template"
        and "{choice}" not in (render.template or "")
    ):
        yield ("render", "template"), "does not hold {choice}", "say where the choice goes"


def _of_extract(spec: OutputContractSpec) -> Iterator[tuple[Path, str, str]]:
    extract = spec.extract
    if extract is None:
        return
    if spec.type in {"choice", "reference_selection"} and extract.mode not in {None, "exact"}:
        yield ("extract", "mode"), f"must be exact for {spec.type!r}", "write exact"
    if len(set(extract.sources)) != len(extract.sources):
        yield ("extract", "sources"), "names one twice", "keep one of the two"
