"""Whether the calls that a backend got are the expected ones, in a right order."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from tests.conformance.looper_case import Fields
from tests.conformance.looper_matching import ABSENT, differences, shown
from tests.conformance.looper_server import SeenCall, most_at_once


def call_differences(
    expect: Fields, calls: Sequence[SeenCall], native: Mapping[str, str]
) -> Iterator[str]:
    """Yield how calls differ from what a turn expects.

    Args:
        expect: the turn's; without `calls` it says nothing about them.
        calls: in any order.
        native: model by the name that the backend knows it by, where the two differ.
    """
    seen = sorted(calls, key=lambda call: call.started)
    if "calls" in expect:
        yield from _listed(expect["calls"] or [], seen, native)
    if "peak_concurrency" in expect:
        peak = most_at_once(seen)
        yield from differences(expect["peak_concurrency"], peak, "peak_concurrency")


def _listed(
    wanted: Sequence[Fields], seen: Sequence[SeenCall], native: Mapping[str, str]
) -> Iterator[str]:
    if len(wanted) != len(seen):
        models = [model_of(call, native) for call in seen]
        expected = [entry.get("model") for entry in wanted]
        yield f"calls: expected {len(wanted)} {shown(expected)}, got {len(seen)} {shown(models)}"
    at = 0
    for entries in _groups(wanted):
        taken = seen[at : at + len(entries)]
        yield from _in_group(entries, taken, at, native)
        yield from _order_differences(seen[:at], taken, at)
        at += len(entries)


def _groups(wanted: Sequence[Fields]) -> Iterator[list[Fields]]:
    """Yield entries that are concurrent with each other; one without `group` is alone."""
    keys = (
        ("group", entry["group"]) if "group" in entry else ("alone", at)
        for at, entry in enumerate(wanted)
    )
    for _, pairs in itertools.groupby(
        zip(keys, wanted, strict=True), key=lambda pair: repr(pair[0])
    ):
        yield [entry for _, entry in pairs]


def _in_group(
    entries: Sequence[Fields], taken: Sequence[SeenCall], at: int, native: Mapping[str, str]
) -> Iterator[str]:
    """Yield what differs however the calls are dealt to the entries of their group."""
    found = [
        [list(_entry_differences(entry, call, f"calls[{at + index}]", native)) for call in taken]
        for index, entry in enumerate(entries)
    ]
    dealt = _deal([[not each for each in row] for row in found])
    free = [call for call in range(len(taken)) if call not in dealt.values()]
    for index, entry in enumerate(entries):
        if index in dealt:
            continue
        if not free:
            yield f"calls[{at + index}]: expected a call of {shown(entry.get('model'))}, got none"
            continue
        # The nearest call says most about what is wrong.
        nearest = min(free, key=lambda call: len(found[index][call]))
        free.remove(nearest)
        yield from found[index][nearest]


def _deal(fits: Sequence[Sequence[bool]]) -> dict[int, int]:
    """Return calls by entry, as many as can be: a largest matching of two sides."""
    entry_of: dict[int, int] = {}

    def place(entry: int, tried: set[int]) -> bool:
        for call, is_fit in enumerate(fits[entry]):
            if is_fit and call not in tried:
                tried.add(call)
                if call not in entry_of or place(entry_of[call], tried):
                    entry_of[call] = entry
                    return True
        return False

    for entry in range(len(fits)):
        place(entry, set())
    return {entry: call for call, entry in entry_of.items()}


def _order_differences(
    earlier: Sequence[SeenCall], taken: Sequence[SeenCall], at: int
) -> Iterator[str]:
    for call in taken:
        for number, other in enumerate(earlier):
            if other.ended is None or other.ended > call.started:
                yield (
                    f"calls[{at}]: expected to start after call {number} has ended, "
                    f"got a start at {call.started_at:.3f} s and an end at {_instant(other)}"
                )
                return


def _instant(call: SeenCall) -> str:
    return "no time" if call.ended_at is None else f"{call.ended_at:.3f} s"


def model_of(call: SeenCall, native: Mapping[str, str]) -> str:
    """Return the model that a call names, under the Router's name for it."""
    name = str(call.body.get("model", "")) if isinstance(call.body, dict) else ""
    return native.get(name, name)


def _entry_differences(
    entry: Fields, call: SeenCall, path: str, native: Mapping[str, str]
) -> Iterator[str]:
    if not isinstance(call.body, dict):
        yield f"{path}.body: expected a JSON object, got {shown(call.body)}"
        return
    body = call.body | {"model": model_of(call, native)}
    messages = body.get("messages", [])
    values = {
        "model": body["model"],
        "body": body,
        "message_count": len(messages),
        "last_message": messages[-1] if messages else ABSENT,
        "authorization": call.headers.get("authorization", ABSENT),
        "route": call.headers.get("x-selected-model", ABSENT),
    }
    for key, got in values.items():
        if key in entry:
            yield from differences(entry[key], got, f"{path}.{key}")
    yield from _presences(entry, body, call.headers, path)


def _presences(entry: Fields, body: Fields, headers: Mapping[str, str], path: str) -> Iterator[str]:
    """Yield what differs of members and headers that must be there or must not."""
    for name, wanted in (entry.get("headers") or {}).items():
        got = headers.get(name.lower(), ABSENT)
        yield from differences(wanted, got, f"{path}.headers.{name}")
    absent = [(f"body.{name}", body.get(name, ABSENT)) for name in entry.get("absent") or ()]
    absent += [
        (f"headers.{name}", headers.get(name.lower(), ABSENT))
        for name in entry.get("absent_headers") or ()
    ]
    for where, got in absent:
        if got is not ABSENT:
            yield f"{path}.{where}: expected nothing, got {shown(got)}"
