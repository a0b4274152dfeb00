"""Names in the blocks of algorithms that ask several models."""

import pytest

from vsr.config.report import Report
from vsr.config.source import read_bytes
from vsr.errors import ConfigRejected

DOCUMENT = """
providers:
  models:
    - {{name: a, backend_refs: [{{endpoint: "10.0.0.1:8000"}}]}}
    - {{name: b, backend_refs: [{{endpoint: "10.0.0.1:8000"}}]}}
routing:
  decisions:
    - {{name: only, modelRefs: [{{model: a}}, {{model: b}}], algorithm: {algorithm}}}
"""
ROLES = "{{name: Solver_One two, models: [a, b]}}, {{name: last, models: [b], access_list: [{}]}}"


def problems(algorithm: str) -> list[str]:
    """Return what is wrong with a document whose decision has `algorithm`."""
    try:
        read_bytes(DOCUMENT.format(algorithm=algorithm).encode(), {}, Report("document"))
    except ConfigRejected as error:
        return [f"{each.path.rpartition('.')[2]} {each.what}" for each in error.problems]
    return []


def fusion(block: str) -> list[str]:
    """Return what is wrong with a fusion block."""
    return problems(f"{{type: fusion, fusion: {{{block}}}}}")


def roles(access: str) -> list[str]:
    """Return what is wrong if the second role may read `access` of the first."""
    return problems(f"{{type: workflows, workflows: {{roles: [{ROLES.format(access)}]}}}}")


def test_panel_is_trimmed() -> None:
    """Blanks around a name are no part of it, wherever the panel is compared with something."""
    panel = 'analysis_models: [" a ", a, "b "]'

    assert fusion(f"{panel}, analysis_overrides: [{{model: b}}]") == []
    assert fusion('analysis_models: [" c "]') == [
        "analysis_models[0] ' c ' is not the name of any of providers.models"
    ]
    fallback = "quorum_failure_policy: fallback, quorum_fallback_target: a"
    assert fusion(f'analysis_models: [" a "], {fallback}') == [
        "quorum_fallback_target is a member of the panel"
    ]


def test_model_named_twice_is_one_of_the_panel() -> None:
    """So that a quorum that can't be met is found at load."""
    assert fusion("analysis_models: [a, b], min_successful_responses: 2") == []
    assert fusion('analysis_models: [a, " a "], min_successful_responses: 2') == [
        "min_successful_responses is more than the panel"
    ]


@pytest.mark.parametrize("access", ["solver-one-two", '"solver-one-two:1:b"', "Solver_One two"])
def test_access_list_names_steps_and_agents(access: str) -> None:
    """A step's id is its role in lower case, with hyphens; an agent's begins with it.

    The role's own name will do.
    """
    assert roles(access) == []


@pytest.mark.parametrize("access", ['"last:0:b"', "solver"])
def test_access_list_names_nothing_else(access: str) -> None:
    """No step reads itself, and part of a name is no name."""
    assert roles(access) == [f"access_list[0] {access.strip(chr(34))!r} is not an earlier role"]
