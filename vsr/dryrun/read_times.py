"""Times of a scenario: seconds, durations, distributions."""

import math
from collections.abc import Callable, Mapping

import msgspec

from vsr.config.position import Path, Value
from vsr.config.quantities import parse_duration_s
from vsr.config.report import Report
from vsr.config.scalars import wrong_type
from vsr.dryrun.scenario import Latency, Shape

_PARTS: Mapping[Shape, tuple[str, str | None]] = {
    Shape.NORMAL: ("mean", "deviation"),
    Shape.LOGNORMAL: ("median", "sigma"),
    Shape.UNIFORM: ("min", "max"),
    Shape.EXPONENTIAL: ("mean", None),
}
_PLAIN = "sigma"
"""The one part that is a number and no time."""


def read_time(value: Value, path: Path, report: Report) -> float | None:
    """Return seconds, from a number of them or a duration; None for a key that is not there."""
    if value is None:
        return None
    if isinstance(value, str):
        return _duration(value, path, report)
    if isinstance(value, bool) or not isinstance(value, int | float):
        wrong_type("a time: seconds, or a duration such as 250ms", value, path, report)
        return None
    if value < 0 or not math.isfinite(value):
        report.add_broken(path, "must not be negative" if value < 0 else "must be finite")
    return float(value)


def read_latency(value: Value, path: Path, report: Report) -> Latency | None:
    """Return a time or a distribution of times; None for a key that is not there."""
    if not isinstance(value, dict):
        seconds = read_time(value, path, report)
        return None if seconds is None else Latency(Shape.FIXED, seconds)
    shapes = [shape for shape in _PARTS if shape in value]
    known = {*_PARTS, "seed"}
    for key in value:
        if key not in known:
            told = ", ".join(sorted(_PARTS))
            report.add_broken((*path, key), "is an unknown key", mend=f"known are {told}, seed")
    if len(shapes) != 1:
        if not report.is_broken(path):
            mend = f"give one of {', '.join(sorted(_PARTS))}"
            report.add_broken(path, "must name one distribution", mend=mend)
        return None
    seed = value.get("seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        wrong_type("a whole number", seed, (*path, "seed"), report)
        seed = None
    latency = _distribution(shapes[0], value[shapes[0]], (*path, shapes[0].value), report)
    return None if latency is None else msgspec.structs.replace(latency, seed=seed)


def _duration(text: str, path: Path, report: Report) -> float | None:
    try:
        seconds = parse_duration_s(text)
    except ValueError:
        what = f"{report.quote(path)} is not a duration"
        report.add_broken(path, what, mend="write it like 1m30s, 250ms or 0s")
        return None
    if seconds < 0:
        report.add_broken(path, "must not be negative")
    return seconds


def _distribution(shape: Shape, value: Value, path: Path, report: Report) -> Latency | None:
    first, second = _PARTS[shape]
    names = [first] if second is None else [first, second]
    if not isinstance(value, dict):
        wrong_type(f"a mapping with {' and '.join(names)}", value, path, report)
        return None
    for key in value:
        if key not in names:
            mend = f"known are {', '.join(names)}"
            report.add_broken((*path, key), "is an unknown key", mend=mend)
    numbers: list[float] = []
    for name in names:
        if name not in value:
            report.add((*path, name), "is missing", mend="add it")
            return None
        read: Callable[[Value, Path, Report], float | None] = read_time
        if name == _PLAIN and isinstance(value[name], str):
            wrong_type("a number", value[name], (*path, name), report)
            return None
        numbers.append(read(value[name], (*path, name), report) or 0.0)
    if shape is Shape.UNIFORM and numbers[0] > numbers[1]:
        report.add_broken(path, "must have its min below its max")
    return Latency(shape, numbers[0], numbers[1] if second else 0.0)
