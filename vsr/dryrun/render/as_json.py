"""A run, or the statistics of many, as JSON."""

import json
from collections.abc import Mapping
from enum import Enum

import msgspec

from vsr.dryrun.record import Record, critical_path
from vsr.dryrun.statistics import PERCENTILES, Spread, Statistics

_DIGITS = 6
"""Of seconds: what tells equally fast calls apart is not shown."""


def render_json(record: Record) -> str:
    """Return the record, its critical path and what follows from it."""
    path = [
        {
            "started_s": link.started_s,
            "ended_s": link.ended_s,
            "call": None if link.call is None else link.call.ordinal,
        }
        for link in critical_path(record)
    ]
    members = msgspec.structs.asdict(record) | {
        "assumed": dict(record.assumed),
        "latency_s": record.latency_s,
        "remaining_s": record.remaining_s,
        "has_succeeded": record.has_succeeded,
        "critical_path": path,
    }
    return _encode(members)


def statistics_json(statistics: Statistics) -> str:
    """Return the statistics."""
    members = msgspec.structs.asdict(statistics)
    for name, value in members.items():
        if isinstance(value, Spread):
            spread = msgspec.structs.asdict(value)
            values = spread.pop("percentiles")
            spread |= {f"p{at}": value for at, value in zip(PERCENTILES, values, strict=True)}
            members[name] = spread
    members["failure_rate"] = statistics.failures / statistics.runs
    members["outcomes"] = dict(statistics.outcomes)
    members["models"] = {
        name: {"calls_per_run": calls, "not_succeeded": failed}
        for name, calls, failed in statistics.models
    }
    return _encode(members)


def _encode(members: object) -> str:
    return json.dumps(_plain(members), indent=2, ensure_ascii=False) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, msgspec.Struct):
        return _plain(msgspec.structs.asdict(value))
    return value
