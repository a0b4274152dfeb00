"""Hypothesis strategies for what clients send and authors write."""

import json
from collections.abc import Iterator
from itertools import cycle

from hypothesis import strategies as st

from vsr.resources.program import And, Leaf, Not, Or, Rule

TEXT = st.text('ab09 _"\\/\n\x00\x7f\u2028{}[]:,éſ表😀', max_size=8)
"""Text that JSON in UTF-8 can hold, rich in what has a meaning in it."""

SCALARS = st.sampled_from([None, True, False, 0, -7, 10**20, 0.5, -1e-9]) | TEXT

JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)

WHITESPACE = st.text(" \t\n\r", max_size=3)

LEAVES = st.builds(Leaf, st.sampled_from(["keyword", "context"]), st.sampled_from("abc"))

RULES: st.SearchStrategy[Rule] = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(And, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Not, inner)
    ),
    max_leaves=10,
)

MATCHES = st.dictionaries(
    st.sampled_from([f"{kind}:{name}" for kind in ("keyword", "context") for name in "abc"]),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
"""Confidences that add up without rounding."""


@st.composite
def json_texts(draw: st.DrawFn, value: object) -> str:
    """Draw a text of the JSON value `value`: any white space, members in their order."""
    spaces = cycle(draw(st.lists(WHITESPACE, min_size=1, max_size=5)))
    return _json_text(value, spaces, ensure_ascii=draw(st.booleans()))


def _json_text(value: object, spaces: Iterator[str], *, ensure_ascii: bool) -> str:
    def render(inner: object) -> str:
        return _json_text(inner, spaces, ensure_ascii=ensure_ascii)

    if isinstance(value, dict):
        members = [f"{render(key)}:{render(inner)}" for key, inner in value.items()]
        text = "{" + (",".join(members) or next(spaces)) + "}"
    elif isinstance(value, list):
        text = "[" + (",".join(map(render, value)) or next(spaces)) + "]"
    else:
        text = json.dumps(value, ensure_ascii=ensure_ascii)
    return next(spaces) + text + next(spaces)


PARTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["text", "", "image_url", "input_image", "input_audio"]),
        "text": TEXT,
    },
)

MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "developer", "tool", "narrator"]),
        "content": TEXT | st.none() | st.lists(PARTS, max_size=3),
    },
    optional={
        "name": TEXT,
        "tool_calls": st.lists(
            st.fixed_dictionaries(
                {"function": st.fixed_dictionaries({"name": TEXT, "arguments": TEXT})}
            ),
            max_size=2,
        ),
    },
)

CHAT_REQUESTS = st.fixed_dictionaries(
    {"model": st.just("auto"), "messages": st.lists(MESSAGES, max_size=6)},
    optional={
        "stream": st.booleans(),
        "max_tokens": st.integers(0, 10_000),
        "tools": st.lists(st.dictionaries(TEXT, SCALARS, max_size=2), max_size=2),
    },
)
