"""Edits of the request that a call step sends: applied in the order in which they are written."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import attrs

from vsr.codec.chat_body import ChatBody
from vsr.graph.value import Prompt

_OWN_MEMBERS = frozenset({"model", "messages", "stream", "stream_options"})


@attrs.frozen
class Edit:
    """One entry of `edits`; exactly one of its fields is set."""

    tools: Literal["keep", "strip"] | None = None
    """`strip`: tools, tool choice, functions and function call go."""
    members: Literal["standard"] | None = None
    """Only members that the chat-completions schema knows stay, in messages too."""
    set: Mapping[str, object] | None = None
    """Members by name; one whose value is null stays as it is."""
    unset: tuple[str, ...] | None = None
    """Members that go."""
    temperature: float | None = None
    max_completion_tokens: int | None = None
    """`max_tokens` stays beside it."""
    logprobs: int | None = None
    """How many alternatives of each token are asked for; null asks for none."""
    response_format: Mapping[str, object] | None = None
    chat_template_kwargs: Mapping[str, object] | None = None
    append: Prompt | str | None = None
    """A user message behind the last one."""
    replace_last: Prompt | str | None = None
    """A user message in the place of the last one."""
    fresh: Prompt | str | None = None
    """A user message in the place of all."""
    messages: tuple[Mapping[str, object], ...] | None = None
    """Messages behind the last one, as they are."""
    only: tuple[str, ...] | None = None
    """Members that stay; all others go."""

    def __attrs_post_init__(self) -> None:
        """Refuse what nobody may set here."""
        if taken := _OWN_MEMBERS & {*(self.set or {}), *(self.unset or ())}:
            raise ValueError(f"{min(taken)} has an edit of its own, or is the Router's")

    @property
    def asks(self) -> bool:
        """Return whether it puts a question of its own beside the client's, or in its place."""
        own = self.append, self.replace_last, self.fresh, self.messages
        return any(each is not None for each in own)

    def apply(self, body: ChatBody) -> ChatBody:
        """Return `body` with the edit made; a field that came to null changes nothing."""
        for field, edit in _EDITS.items():
            value = getattr(self, field)
            if value is not None:
                body = edit(body, value)
        return body


def edited(body: ChatBody, edits: Sequence[Edit]) -> ChatBody:
    """Return `body` with all edits made in order."""
    for edit in edits:
        body = edit.apply(body)
    return body


def placed(body: ChatBody, prompt: Prompt | str) -> ChatBody:
    """Return `body` with a prompt's message where the prompt says."""
    if isinstance(prompt, str):
        return body.append_user(prompt)
    if prompt.place == "replace_last":
        return body.replace_last(prompt.text)
    return body.fresh(prompt.text) if prompt.place == "fresh" else body.append_user(prompt.text)


def _text(prompt: object) -> str:
    return prompt.text if isinstance(prompt, Prompt) else str(prompt)


def _with_members(body: ChatBody, members: object) -> ChatBody:
    assert isinstance(members, Mapping)  # noqa: S101  # the field's type
    for name, value in members.items():
        if value is not None:
            body = body.with_member(name, value)
    return body


def _member(name: str) -> Callable[[ChatBody, object], ChatBody]:
    return lambda body, value: body.with_member(name, value)


def _only(body: ChatBody, names: object) -> ChatBody:
    kept = frozenset(names) | {"messages"}  # type: ignore[call-overload]  # the field's type
    return body.without(*(name for name in body.members if name not in kept))


_EDITS: Mapping[str, Callable[[ChatBody, object], ChatBody]] = {
    "tools": lambda body, word: body.tool_free() if word == "strip" else body,
    "members": lambda body, _: body.standard(),
    "only": _only,
    "unset": lambda body, names: body.without(*names),  # type: ignore[misc]  # the field's type
    "set": _with_members,
    "temperature": _member("temperature"),
    "max_completion_tokens": _member("max_completion_tokens"),
    "logprobs": lambda body, count: body.with_logprobs(count),  # type: ignore[arg-type]  # as above
    "response_format": _member("response_format"),
    "chat_template_kwargs": _member("chat_template_kwargs"),
    "append": lambda body, prompt: body.append_user(_text(prompt)),
    "replace_last": lambda body, prompt: body.replace_last(_text(prompt)),
    "fresh": lambda body, prompt: body.fresh(_text(prompt)),
    "messages": lambda body, messages: body.appended(messages),  # type: ignore[arg-type]  # as above
}
