"""What the steps of a graph look like from afar: who lies inside of whom, and each one's fields."""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from vsr.graph.picture.signal_words import signal_words

_HEAD = ("id", "type")
_MAX_TEXT = 60
_CONDITIONS = frozenset({"when", "until", "success"})
_LEAVING = frozenset({"respond", "fail", "break"})


@attrs.frozen
class Part:
    """One list of steps inside a step."""

    label: str
    """Its field, and when it is taken where that is written beside it."""
    steps: tuple["Item", ...]


@attrs.frozen
class Item:
    """One step."""

    name: str
    """Its id; empty where it has none."""
    type: str
    facts: tuple[tuple[str, str], ...]
    """Its other fields in a line of text each, in authored order."""
    parts: tuple[Part, ...] = ()

    @property
    def leaves(self) -> bool:
        """Return whether nothing behind it in its list is reached."""
        return self.type in _LEAVING

    @property
    def may_pass(self) -> bool:
        """Return whether a branch goes on past all of its arms."""
        return self.type == "branch" and all(part.label != "else" for part in self.parts)


def outline(steps: Sequence[Mapping[str, object]]) -> tuple[Item, ...]:
    """Return the outline of authored steps; of faulty ones too, as far as they have a type."""
    return tuple(_item(step) for step in steps)


def _item(step: Mapping[str, object]) -> Item:
    facts: list[tuple[str, str]] = []
    parts: list[Part] = []
    for key, value in step.items():
        if key in _HEAD:
            continue
        inside = list(_parts(key, value))
        parts += inside
        if not inside:
            facts.append((key, _condition_in(key, value) or written(value)))
    name, kind = step.get("id"), step.get("type")
    return Item(str(name or ""), str(kind or "?"), tuple(facts), tuple(parts))


def _parts(key: str, value: object) -> Iterator[Part]:
    """Yield the lists of steps in one field: itself, its items, or members of its items."""
    if _is_steps(value):
        yield Part(key, outline(value))  # type: ignore[arg-type]  # as just asked
        return
    for at, each in enumerate(value if isinstance(value, (list, tuple)) else ()):
        if _is_steps(each):
            yield Part(f"{key} {at + 1}", outline(each))
        elif isinstance(each, Mapping):
            for inner, steps in each.items():
                if _is_steps(steps):
                    rest = {name: other for name, other in each.items() if name != inner}
                    label = " ".join(f"{name} {_condition(name, it)}" for name, it in rest.items())
                    yield Part(label or inner, outline(steps))


def _is_steps(value: object) -> bool:
    is_list = isinstance(value, (list, tuple)) and bool(value)
    return is_list and all(isinstance(each, Mapping) and "type" in each for each in value)  # type: ignore[attr-defined]  # a list


def _condition_in(key: str, value: object) -> str | None:
    """Return a field's condition on signals in words; None if it has none."""
    words = signal_words(value, _plain) if key in _CONDITIONS else None
    return None if words is None else written(words)


def _condition(key: str, value: object) -> str:
    return _condition_in(key, value) or _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, of),) = value.items()
        return f"{name} {written(of)}"
    return written(value)


def written(value: object) -> str:
    """Return the same, cut if it is long."""
    text = in_one_line(value)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 3].rstrip()}..."


def in_one_line(value: object) -> str:
    """Return a value in one line, as YAML has it."""
    match value:
        case None | bool():
            return "null" if value is None else str(value).lower()
        case str():
            return " ".join(value.split()) or "''"
        case float():
            return f"{value:g}"
        case Mapping():
            inner = ", ".join(f"{key}: {in_one_line(each)}" for key, each in value.items())
            return f"{{{inner}}}"
        case list() | tuple():
            return f"[{', '.join(map(in_one_line, value))}]"
        case _:
            return str(value)
