"""What is known of names before a graph runs."""

from collections.abc import Mapping

from vsr.graph.env import Env, Static, resolve
from vsr.graph.scope import Reference


def test_parts_of_a_parameter_that_is_not_given_are_not_given() -> None:
    """A graph may take a record apart and leave it to the caller whether there is one."""
    env = Env(
        {}, {"given": Static(Mapping[str, object], {"a": 1}), "left": Static(type(None), None)}
    )

    assert resolve(Reference("params", ("left", "a", "b")), env) == Static(type(None), None)
    assert resolve(Reference("params", ("left",)), env) == Static(type(None), None)
    assert resolve(Reference("params", ("given", "a")), env) == Static(object, 1)
