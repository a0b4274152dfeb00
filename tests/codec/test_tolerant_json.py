"""A JSON object in what a model wrote around it."""

import contextlib
import json
import time
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.codec.tolerant_json import NoJsonObject, read_as, read_object


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (' {"a": 1} \n', {"a": 1}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n', {"a": 1}),
        ('```json\n{"a": 1}\n  ```  \n', {"a": 1}),
        ('Sure: {"a": {"b": 1}} Done.', {"a": {"b": 1}}),
        ('[{"a": 1}]', {"a": 1}),
        ('Well ```json\n{"a": 1}\n```', {"a": 1}),
        ('{"a": [1, 2, ], }', {"a": [1, 2]}),
        ('{"a": 1,\n\t}', {"a": 1}),
        ("{`a`: `b`}", {"a": "b"}),
        ('{"a": "b `c` ,} d",}', {"a": "b `c` ,} d"}),
        (r'{"a": "\d+\.\u00e9\u12\n"}', {"a": "\\d+\\.é\\u12\n"}),
        (r'{"a": "C:\\x\y\""}', {"a": 'C:\\x\\y"'}),
        (r'so {"a": "\q",} and', {"a": r"\q"}),
    ],
)
def test_read_object_mends_what_models_do(text: str, value: object) -> None:
    """Fences and talk are cut away; backticks, escapes and trailing commas are repaired."""
    assert read_object(text) == value


def test_what_parses_is_not_repaired() -> None:
    """Repair is tried last, so that it never changes what was right."""
    assert read_object(r'x {"a": "\\d ,}"} y') == {"a": r"\d ,}"}


@pytest.mark.parametrize(
    "text",
    ["", " ", "no", "null", "[]", "}{", "{", '{"a": 1,,}', "```json", '```{"a": 1}```', "{'a': 1}"],
)
def test_read_object_refuses_what_has_none(text: str) -> None:
    """Nothing else is mended: what is left is no object."""
    with pytest.raises(NoJsonObject):
        read_object(text)


def test_the_errors_of_all_candidates_are_joined() -> None:
    """Each try says why it failed, and none quotes the text."""
    with pytest.raises(NoJsonObject) as caught:
        read_object('secret {"a" 1,}')

    assert str(caught.value).count("; ") == 3
    assert "secret" not in str(caught.value)


def test_texts_are_tried_in_order() -> None:
    """A later text counts only if none before has an object."""
    assert read_object("no", '{"b": 1}', '{"c": 1}') == {"b": 1}


def test_read_as_goes_on_behind_an_object_of_another_kind() -> None:
    """A candidate wins only if it is of the wanted kind."""

    def read_plan(value: Mapping[str, object]) -> object:
        if "plan" not in value:
            raise ValueError("it has no plan")
        return value["plan"]

    assert read_as(read_plan, '{"a": 1}', '{"plan": 2}') == 2
    with pytest.raises(NoJsonObject, match="it has no plan"):
        read_as(read_plan, '{"a": 1}')


def test_deep_nesting_is_no_crash() -> None:
    """A model may write any number of brackets."""
    with pytest.raises(NoJsonObject):
        read_object('{"a":' + "[" * 200_000)


@pytest.mark.parametrize("unit", ['"', '\\"', ",", ", ", "`", "{", "}", '"\\', "```\n", '",'])
def test_time_is_linear(unit: str) -> None:
    """A million characters of any one kind take no more than a moment."""
    text = '{"' + unit * (300_000 // len(unit)) + "}"
    started = time.process_time()

    with contextlib.suppress(NoJsonObject):
        read_object(text)

    assert time.process_time() - started < 1.0


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=80)
@given(st.dictionaries(st.text(max_size=3), _JSON, max_size=3), st.sampled_from(["", "Answer:\n"]))
def test_any_object_is_found(value: dict[str, object], before: str) -> None:
    """An object survives talk around it, a fence, and a comma too many."""
    text = json.dumps(value)

    assert read_object(f"{before}{text}") == value
    assert read_object(f"```json\n{text}\n```") == value
    if value:
        assert read_object(f"{before}{text[:-1]} ,}}") == value


@settings(max_examples=80)
@given(st.text(alphabet='{}[]",:`\\nu1 \n', max_size=40))
def test_any_text_gives_an_object_or_the_one_error(text: str) -> None:
    """Nothing a model writes gets through as another failure."""
    with contextlib.suppress(NoJsonObject):
        assert isinstance(read_object(text), dict)
