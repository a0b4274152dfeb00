"""What the steps of a graph look like from afar."""

from vsr.graph.picture.outline import in_one_line, outline, written


def call(name: str = "") -> dict[str, object]:
    """Return a call step."""
    return {"id": name, "type": "call", "model": "small"}


def test_lists_of_steps_become_parts_wherever_they_stand() -> None:
    """A field, the items of a list, members beside a condition; also those of unknown nodes."""
    (item,) = outline(
        [
            {
                "id": "it",
                "type": "unheard_of",
                "do": [call("a")],
                "branches": [[call("b")], [call("c"), call("d")]],
                "cases": [{"when": {"succeeded": "$a"}, "then": [call("e")]}],
                "speed": 3,
            }
        ]
    )

    found = [(part.label, [each.name for each in part.steps]) for part in item.parts]
    assert found == [
        ("do", ["a"]),
        ("branches 1", ["b"]),
        ("branches 2", ["c", "d"]),
        ("when succeeded $a", ["e"]),
    ]
    assert item.facts == (("speed", "3"),)


def test_branch_without_else_may_go_past_its_arms() -> None:
    """Its arrow past all of them is drawn."""
    case = {"when": {"empty": "$a"}, "then": [call()]}
    open_, closed = outline(
        [
            {"type": "branch", "cases": [case]},
            {"type": "branch", "cases": [case], "else": [call()]},
        ]
    )

    assert (open_.may_pass, closed.may_pass) == (True, False)


def test_values_are_shown_in_one_line() -> None:
    """As YAML has them, long ones cut."""
    value = {"a": [1, True, None], "b": " two\n words ", "c": 0.5, "d": ""}

    assert in_one_line(value) == "{a: [1, true, null], b: two words, c: 0.5, d: ''}"
    assert written("x" * 100) == "x" * 57 + "..."


def test_step_without_a_type_is_shown_all_the_same() -> None:
    """A faulty graph can be looked at."""
    (item,) = outline([{"id": "x"}])

    assert (item.name, item.type) == ("x", "?")
