"""A chat-completions request whose members are edited one by one; every other byte stays."""

from collections.abc import Iterable, Mapping

import msgspec

from vsr.codec.chat_history import (
    read_any_question,
    read_context,
    read_contracts,
    read_question,
    read_trailing_tools,
)
from vsr.codec.chat_messages import read_entries, read_members
from vsr.codec.envelope import open_envelope
from vsr.codec.standard_members import keep_standard
from vsr.codec.strict_json import NULL
from vsr.errors import InvalidRequest

_TRUE = msgspec.Raw(b"true")
_TOOL_MEMBERS = ("tools", "tool_choice", "functions", "function_call")
_MAX_TOP_LOGPROBS = 5
_MAX_DIGITS = 19

JsonMessage = Mapping[str, object] | msgspec.Raw
"""A message as JSON-able members, or as its JSON."""


class ChatBody(msgspec.Struct, frozen=True):
    """One request body; every edit returns another one.

    What is read is decoded when asked for and not kept. Each property and each edit of messages
    may raise `InvalidRequest`: a string that is no Unicode text shows only when it is read.

    Source of every rule: looper-algorithms 3.1, where not said otherwise.
    """

    members: Mapping[str, msgspec.Raw]
    """Top-level members in the client's order; `messages` is among them, if it is there."""

    def encode(self) -> bytes:
        """Return the JSON: the members in order, each value with the bytes it came with."""
        pairs = (msgspec.json.encode(name) + b":" + raw for name, raw in self.members.items())
        return b"{" + b",".join(pairs) + b"}"

    @property
    def question(self) -> str:
        """Return the last user message that is a string; empty if there is none."""
        return read_question(self._messages)

    @property
    def question_any(self) -> str:
        """Return the last user text, the first text part of a list included; empty if none."""
        return read_any_question(self._messages)

    @property
    def context_text(self) -> str:
        """Return the string contents of system and tool messages, blank ones left out.

        Source: looper-algorithms 10, step 1.
        """
        return read_context(self._messages)

    @property
    def contract_texts(self) -> tuple[str, ...]:
        """Return the output contracts that messages state, none of them blank, in order."""
        return read_contracts(self._messages)

    @property
    def trailing_tool_messages(self) -> tuple[Mapping[str, object], ...]:
        """Return the tool messages that end the conversation, in order, decoded."""
        return read_trailing_tools(self._messages)

    @property
    def message_count(self) -> int:
        """Return how many messages there are."""
        return len(self._messages)

    def integer(self, name: str) -> int | None:
        """Return a member that is a whole number; None where it is absent or something else."""
        raw = bytes(self.members.get(name, NULL))
        return int(raw) if raw.isdigit() and len(raw) < _MAX_DIGITS else None

    @property
    def has_tools(self) -> bool:
        """Return whether the client declared tools, or functions in their older form."""
        return any(read_entries(self.members.get(name, NULL)) for name in ("tools", "functions"))

    @property
    def is_streaming(self) -> bool:
        """Return whether the client wants a stream."""
        return self.members.get("stream") == _TRUE

    @property
    def wants_usage(self) -> bool:
        """Return whether the client asked for a usage chunk at the end of its stream."""
        return self._stream_options.get("include_usage") == _TRUE

    def with_member(self, name: str, value: object) -> "ChatBody":
        """Set a member to a JSON-able value: in its place, or behind all if it is new."""
        return self._with({name: msgspec.Raw(msgspec.json.encode(value))})

    def without(self, *names: str) -> "ChatBody":
        """Take members out."""
        return ChatBody({name: raw for name, raw in self.members.items() if name not in names})

    def tool_free(self) -> "ChatBody":
        """Take out what lets a model call tools; tool messages of the conversation stay."""
        return self.without(*_TOOL_MEMBERS)

    def standard(self) -> "ChatBody":
        """Keep only what the OpenAI schema knows; see `standard_members`."""
        return ChatBody(keep_standard(self.members))

    def with_stream(self, is_streaming: bool) -> "ChatBody":  # noqa: FBT001  # `stream` of a step
        """Write `stream`; a streamed call reports its usage, another one has no stream options."""
        written = self.with_member("stream", is_streaming)
        if not is_streaming:
            return written.without("stream_options")
        options = {**self._stream_options, "include_usage": _TRUE}
        return written.with_member("stream_options", options)

    def with_logprobs(self, count: int) -> "ChatBody":
        """Ask for logprobs with `count` alternatives of each token, at least 1 and at most 5."""
        clamped = min(max(count, 1), _MAX_TOP_LOGPROBS)
        return self.with_member("logprobs", value=True).with_member("top_logprobs", clamped)

    def append_user(self, text: str) -> "ChatBody":
        """Add a user message behind the last message."""
        return self.appended([_user_message(text)])

    def replace_last(self, text: str) -> "ChatBody":
        """Put a user message in the place of the last message, whatever its role.

        Without a message there is none to replace, and nothing changes.
        """
        messages = self._messages
        if not messages:
            return self
        return self.with_member("messages", [*messages[:-1], _user_message(text)])

    def fresh(self, text: str) -> "ChatBody":
        """Make a user message the only one; all other members stay."""
        return self.with_member("messages", [_user_message(text)])

    def appended(self, messages: Iterable[JsonMessage]) -> "ChatBody":
        """Add messages behind the last one; nothing changes without a `messages` member."""
        if "messages" not in self.members:
            return self
        return self.with_member("messages", [*self._messages, *messages])

    @property
    def _messages(self) -> list[msgspec.Raw]:
        return read_entries(self.members.get("messages", NULL)) or []

    @property
    def _stream_options(self) -> dict[str, msgspec.Raw]:
        return read_members(self.members.get("stream_options", NULL)) or {}

    def _with(self, changes: Mapping[str, msgspec.Raw]) -> "ChatBody":
        return ChatBody({**self.members, **changes})


def read_body(body: bytes) -> ChatBody:
    """Find the members of a request.

    Raises:
        InvalidRequest: `body` is not a JSON object, names a member twice, or has no messages.
    """
    members = open_envelope(body).members
    messages = members.get("messages")
    if messages is None:
        raise InvalidRequest("messages field is required", param="messages")
    if read_entries(messages) is None:
        raise InvalidRequest("messages field must be an array", param="messages")
    return ChatBody(members)


def new_body(text: str) -> ChatBody:
    """Return a request that is one user message and nothing else."""
    return ChatBody({}).fresh(text)


def _user_message(text: str) -> Mapping[str, object]:
    return {"role": "user", "content": text}
