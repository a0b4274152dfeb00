"""A snapshot on its way between processes of ours: in parts, none of which takes long to read."""

import pickle
from collections.abc import Iterable, Iterator

import msgspec

from vsr.resources.snapshot import Snapshot
from vsr.slices import Sliced

_BATCH = 32
"""Resources that are read between two looks at the loop; about a millisecond's worth."""

UNREADABLE = (
    msgspec.MsgspecError,
    pickle.UnpicklingError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    TypeError,
    ValueError,
)
"""What `reading` raises for parts that another release wrote, or that are cut off."""


def parts_of(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield the parts of `snapshot`, which `reading` takes."""
    for name in snapshot.__struct_fields__:
        value = getattr(snapshot, name)
        if not isinstance(value, tuple):
            yield pickle.dumps((name, False, value), -1)
            continue
        for at in range(0, len(value), _BATCH):
            yield pickle.dumps((name, True, value[at : at + _BATCH]), -1)


def reading(parts: Iterable[bytes]) -> Sliced[Snapshot]:
    """Return the snapshot of all its parts, in slices; they come from a process of ours."""
    members: dict[str, object] = {}
    for part in parts:
        name, is_list, items = pickle.loads(part)  # noqa: S301  # see above
        if is_list:
            members[name] = (*members.get(name, ()), *items)  # type: ignore[misc]  # a tuple
        else:
            members[name] = items
        yield
    return Snapshot(**members)  # type: ignore[arg-type]  # of one
