"""How a model's reasoning is switched in a Chat Completions request.

Source: the reference's reasoning families and transports; where its releases differ, the newer.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

import msgspec

from vsr.codec.edits import BodyEdit, Changes, Draft, ObjectEdit

TEMPLATE_ARGUMENTS = "chat_template_kwargs"
CLIENT_EFFORT = "reasoning_effort"
"""Where OpenAI's clients say how much they want the model to reason."""

LAST_EFFORT = "medium"
"""Used where neither the decision nor the document nor the family names an effort."""
_CLIENT_DEFAULT = "low"
_NULL = b"null"
_TRUE, _FALSE = b"true", b"false"


class Transport(StrEnum):
    """Where a provider's API takes the switch."""

    TEMPLATE = "chat_template_kwargs"
    """Arguments of the chat template, as self-hosted runtimes take them."""
    TOP_LEVEL_EFFORT = "top_level_effort"
    REASONING_OBJECT = "reasoning_object"
    THINKING_OBJECT = "thinking_object"
    OUTPUT_CONFIG_EFFORT = "output_config_effort"
    DEEPSEEK_THINKING = "deepseek_thinking"


class Control(Protocol):
    """What must be known of a model's reasoning family: the resource of that name has it."""

    @property
    def kind(self) -> str:
        """What switches it: a word of the resource's `ReasoningKind`."""

    @property
    def parameter(self) -> str:
        """Name of the template argument or of the member."""

    @property
    def activation_parameter(self) -> str | None:
        """Name of a boolean template argument beside the effort."""

    @property
    def effort_flags(self) -> Mapping[str, str]:
        """Level to the boolean template argument that stands for it."""

    @property
    def levels(self) -> Sequence[str]:
        """Efforts the model knows, from little to much."""

    @property
    def default_level(self) -> str | None:
        """The effort to use when nobody names one."""

    @property
    def modes(self) -> Sequence[str]:
        """Some of `enabled`, `disabled`, `adaptive`; empty if not known."""

    @property
    def default_mode(self) -> str | None:
        """The mode the model is in by itself."""

    @property
    def disabled_level(self) -> str | None:
        """The effort that means no reasoning."""


class ReasoningWish(msgspec.Struct, frozen=True):
    """What a decision and the document want of a model's reasoning."""

    use_reasoning: bool = False
    mode: str | None = None
    """`enabled`, `disabled` or `adaptive`; outweighs `use_reasoning`."""
    effort: str | None = None
    default_effort: str | None = None
    """The document's, for models whose reference names none."""

    @property
    def is_on(self) -> bool:
        """Return whether the model shall reason."""
        return self.use_reasoning if self.mode is None else self.mode != "disabled"

    @property
    def evidence(self) -> str:
        """Return what evidence and diagnostic headers call it."""
        return "on" if self.is_on else "off"


class MemberEdits(msgspec.Struct, frozen=True):
    """Fixed changes of a body's members, and changes inside some that are objects."""

    fixed: Changes
    objects: tuple[ObjectEdit, ...] = ()

    def __call__(self, draft: Draft) -> Changes:
        """Return them for one body."""
        changes = dict(self.fixed)
        for edit in self.objects:
            changes.update(edit(draft))
        return changes


class ClientEffort(msgspec.Struct, frozen=True):
    """Hands the client's own effort, or a low one, to the chat template."""

    parameter: str
    fallback: ObjectEdit | None

    def __call__(self, draft: Draft) -> Changes:
        """Return the changes for one body."""
        effort = draft.raw(CLIENT_EFFORT)
        changes: dict[str, bytes | None] = {CLIENT_EFFORT: None}
        if effort is not None and effort != _NULL:
            changes.update(ObjectEdit(TEMPLATE_ARGUMENTS, {self.parameter: effort})(draft))
        elif self.fallback is not None:
            changes.update(self.fallback(draft))
        return changes


class _Setting(msgspec.Struct, frozen=True):
    is_on: bool
    effort: bytes
    """As JSON, like the mode."""
    mode: bytes


def compile_reasoning(
    control: Control | None, transport: str, wish: ReasoningWish
) -> BodyEdit | None:
    """Return the edit that makes a model's requests reason as wished; None leaves them alone.

    Args:
        control: the model's family; without one nothing is known, and nothing is touched.
        transport: of the provider that serves the model, a word of `Transport`.
        wish: of one reference to the model.
    """
    if control is None:
        return None
    mode = wish.mode or control.default_mode
    setting = _Setting(
        is_on=wish.is_on,
        effort=_json(_effort(control, wish)),
        mode=_json(mode if mode and mode != "disabled" else "enabled"),
    )
    return _WRITERS[Transport(transport)](control, setting)


def _effort(control: Control, wish: ReasoningWish) -> str:
    levels = control.levels
    for effort in (wish.effort, wish.default_effort, control.default_level, LAST_EFFORT):
        if effort and (not levels or effort in levels):
            return effort
    return levels[len(levels) // 2]


def _template(control: Control, setting: _Setting) -> BodyEdit | None:
    if control.kind == "top_level_reasoning_effort":
        return _top_level_effort(control, setting)
    arguments = _arguments_on(control, setting) if setting.is_on else _arguments_off(control)
    if arguments is not None:
        return MemberEdits({CLIENT_EFFORT: None}, (ObjectEdit(TEMPLATE_ARGUMENTS, arguments),))
    if control.kind != "reasoning_effort":
        return None
    levels, fallback = control.levels, None
    if not levels or _CLIENT_DEFAULT in levels:
        low = {control.parameter: _json(_CLIENT_DEFAULT)}
        fallback = ObjectEdit(TEMPLATE_ARGUMENTS, low)
    return ClientEffort(control.parameter, fallback)


def _arguments_on(control: Control, setting: _Setting) -> Changes:
    parameter, activation = control.parameter, control.activation_parameter
    if control.kind == "chat_template_kwargs":
        return {parameter: _TRUE}
    if control.kind == "reasoning_mode":
        return {parameter: setting.mode}
    if not activation:
        return {parameter: setting.effort}
    if not control.effort_flags:
        return {parameter: setting.effort, activation: _TRUE}
    flags = {
        flag: _TRUE if _json(level) == setting.effort else None
        for level, flag in control.effort_flags.items()
    }
    return {parameter: None, activation: _TRUE, **flags}


def _arguments_off(control: Control) -> Changes | None:
    """Return the template arguments that switch reasoning off, or None if there are none."""
    if not _may_switch_off(control):
        return None
    if control.kind == "chat_template_kwargs":
        return {control.parameter: _FALSE}
    if control.kind == "reasoning_mode":
        return {control.parameter: _json("disabled")}
    if control.activation_parameter:
        return {**_template_forms(control), control.activation_parameter: _FALSE}
    off = _off_effort(control)
    return None if off is None else {control.parameter: off}


def _top_level_effort(control: Control, setting: _Setting) -> BodyEdit | None:
    if not _is_by_effort(control):
        return _template(control, setting)
    effort = setting.effort if setting.is_on else _off_effort(control)
    if effort is None:
        return None  # the client's own, if any, is as good
    fixed = {CLIENT_EFFORT: None, "reasoning": None, "thinking": None, control.parameter: effort}
    return MemberEdits(fixed, _without_template_forms(control))


def _reasoning_object(control: Control, setting: _Setting) -> BodyEdit | None:
    if not setting.is_on and not _may_switch_off(control):
        return None
    effort = setting.effort if setting.is_on else _off_effort(control)
    # Effort, token budget and plain switch exclude each other.
    changes: dict[str, bytes | None] = {"effort": None, "max_tokens": None, "enabled": None}
    if _is_by_effort(control) and effort is not None:
        changes["effort"] = effort
    else:
        changes["enabled"] = _TRUE if setting.is_on else _FALSE
    return MemberEdits(
        {CLIENT_EFFORT: None},
        (ObjectEdit("reasoning", changes), *_without_template_forms(control)),
    )


def _thinking_object(control: Control, setting: _Setting) -> BodyEdit | None:
    if not setting.is_on and not _may_switch_off(control):
        return None
    return MemberEdits(
        {CLIENT_EFFORT: None}, (_thinking(setting), *_without_template_forms(control))
    )


def _output_config_effort(control: Control, setting: _Setting) -> BodyEdit | None:
    effort = setting.effort if setting.is_on else _json_or_none(control.disabled_level)
    if effort is None or not _is_by_effort(control):
        return None
    return MemberEdits(
        {CLIENT_EFFORT: None}, (ObjectEdit("output_config", {control.parameter: effort}),)
    )


def _deepseek_thinking(control: Control, setting: _Setting) -> BodyEdit | None:
    if not setting.is_on and not _may_switch_off(control):
        return None
    effort = setting.effort if setting.is_on else None
    return MemberEdits({TEMPLATE_ARGUMENTS: None, CLIENT_EFFORT: effort}, (_thinking(setting),))


_WRITERS: Mapping[Transport, Callable[[Control, _Setting], BodyEdit | None]] = MappingProxyType(
    {
        Transport.TEMPLATE: _template,
        Transport.TOP_LEVEL_EFFORT: _top_level_effort,
        Transport.REASONING_OBJECT: _reasoning_object,
        Transport.THINKING_OBJECT: _thinking_object,
        Transport.OUTPUT_CONFIG_EFFORT: _output_config_effort,
        Transport.DEEPSEEK_THINKING: _deepseek_thinking,
    }
)


def _thinking(setting: _Setting) -> ObjectEdit:
    return ObjectEdit("thinking", {"type": _json("enabled" if setting.is_on else "disabled")})


def _is_by_effort(control: Control) -> bool:
    return control.kind in {"reasoning_effort", "top_level_reasoning_effort"}


def _may_switch_off(control: Control) -> bool:
    """Return False for a model that always reasons; without modes nothing says that it does."""
    return not control.modes or "disabled" in control.modes


def _off_effort(control: Control) -> bytes | None:
    if control.disabled_level is None and "disabled" in control.modes:
        return _json("none")
    return _json_or_none(control.disabled_level)


def _template_forms(control: Control) -> Changes:
    """Return the removal of every template argument that the family has."""
    names = [control.parameter, *control.effort_flags.values()]
    if control.activation_parameter:
        names.append(control.activation_parameter)
    return dict.fromkeys(names)


def _without_template_forms(control: Control) -> tuple[ObjectEdit, ...]:
    return (ObjectEdit(TEMPLATE_ARGUMENTS, _template_forms(control)),)


def _json(text: str) -> bytes:
    return msgspec.json.encode(text)


def _json_or_none(text: str | None) -> bytes | None:
    return None if text is None else _json(text)
