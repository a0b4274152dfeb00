"""Roles of a workflow as steps, as validation and compilation see them."""

import re

import attrs

from vsr.config.document.looper_algorithms import WorkflowRoleConfig

DEFAULT_MAX_STEPS = 3
DEFAULT_MAX_PARALLEL = 2
_SEPARATOR = re.compile(r"[ _]")


def step_id(role: str) -> str:
    """Return the id of a role's step. Source: the reference."""
    return _SEPARATOR.sub("-", role.strip().lower())


@attrs.define
class Sources:
    """What an access list may name: earlier roles and their agents."""

    _ids: dict[str, str] = attrs.field(factory=dict, init=False)
    """By what may be written, the id it stands for."""

    def add(self, role: WorkflowRoleConfig) -> None:
        """Let later roles name this one, by its name or its step, and each of its agents."""
        own = step_id(role.name)
        self._ids[own] = own
        self._ids.setdefault(role.name.strip(), own)
        for at, model in enumerate(role.models):
            agent = f"{own}:{at}:{model.strip()}"
            self._ids[agent] = agent

    def resolve(self, written: str) -> str | None:
        """Return the id of a step or an agent; None if it is no earlier one's."""
        return self._ids.get(written.strip())
