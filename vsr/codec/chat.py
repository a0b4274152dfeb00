"""A Chat Completions request as routing reads it."""

from collections.abc import Mapping

import msgspec

from vsr.codec.chat_facts import ChatFacts, read_facts
from vsr.codec.chat_messages import Conversation, read_conversation, read_members, read_string
from vsr.codec.chat_tokens import MAX_TOKENS, measure, text_tokens
from vsr.codec.envelope import Envelope, open_envelope
from vsr.codec.strict_json import utf8_bytes
from vsr.errors import InvalidRequest

# Limits of the reference on `metadata`.
_METADATA_ENTRIES = 32
_METADATA_KEY_BYTES = 128
_METADATA_VALUE_BYTES = 1024

_RESERVES = ("max_tokens", "max_completion_tokens")
_BOUND_PER_BYTE = 4

_TRUE = msgspec.Raw(b"true")
_FALSE = msgspec.Raw(b"false")
_KINDS = {'"': "String", "t": "True", "f": "False", "n": "Null", "{": "JSON", "[": "JSON"}
"""The reference's name of a JSON value's type, by its first byte; all others are numbers."""


class ChatRequest(msgspec.Struct, gc=False):
    """One request; what lies behind a member is decoded when first asked for, and once.

    Every property may raise `InvalidRequest`: a string that is not UTF-8 shows only when read.
    """

    envelope: Envelope
    model: str
    """As the client named it, trimmed."""
    is_streaming: bool
    metadata: Mapping[str, str]
    _conversation: Conversation | None = None
    _facts: ChatFacts | None = None
    _token_count: int | None = None

    @property
    def facts(self) -> ChatFacts:
        """Return the conversation's texts and counts."""
        if self._facts is None:
            self._facts = read_facts(self._read_conversation())
        return self._facts

    @property
    def evaluation_text(self) -> str:
        """Return what text signals read: the current user text, else all other turns' texts."""
        facts = self.facts
        return facts.current_user_text or " ".join(facts.non_user_texts)

    @property
    def context_text(self) -> str:
        """Return the text that the token count starts from; earlier user turns are not in it."""
        facts = self.facts
        if not facts.current_user_text:
            return " ".join(facts.non_user_texts)
        return " ".join((*facts.non_user_texts, facts.current_user_text))

    @property
    def token_count(self) -> int:
        """Return the larger of the text's estimate and the envelope's floor."""
        if self._token_count is None:
            floor = measure(self._read_conversation(), self.envelope.members).tokens
            estimate = text_tokens(utf8_bytes(self.context_text))
            self._token_count = min(max(estimate, floor), MAX_TOKENS)
        return self._token_count

    def is_surely_shorter_than(self, tokens: int) -> bool:
        """Return True only if `token_count` is below `tokens`; nothing is decoded to tell.

        A byte of the body counts as text or as structure, never more than once; framing adds at
        most eight tokens per three bytes (`{},`), which is where the factor comes from. An output
        reserve, for which a few bytes can ask much, is added; an image, or an escape that could
        hide one, gives up.
        """
        body, members = self.envelope.body, self.envelope.members
        bound = _BOUND_PER_BYTE * (len(body) + 1)
        for name in _RESERVES:
            if name in members and (literal := bytes(members[name])).isdigit():
                bound += int(literal[:20])
        if bound >= tokens or b"image" in body.lower():
            return False
        # A single byte is looked for many times faster than two.
        return b"\\" not in body or b"\\u" not in body

    @property
    def is_blank(self) -> bool:
        """Return whether there is nothing that a signal could read."""
        if self.metadata:
            return False
        facts = self.facts
        return not facts.current_user_text and facts.is_empty and not self.evaluation_text

    def _read_conversation(self) -> Conversation:
        if self._conversation is None:
            self._conversation = read_conversation(self.envelope.members)
        return self._conversation


def read_chat(body: bytes) -> ChatRequest:
    """Open the envelope and check the members that every request is checked for.

    Raises:
        InvalidRequest: `body` is not a JSON object, or one of those members is missing or wrong.
    """
    envelope = open_envelope(body)
    members = envelope.members
    messages = members.get("messages")
    if messages is None:
        raise InvalidRequest("messages field is required", param="messages")
    if memoryview(messages)[0] != ord("["):
        raise InvalidRequest("messages field must be an array", param="messages")
    model = _read_model(members.get("model"))
    stream = members.get("stream", _FALSE)
    is_streaming = stream == _TRUE
    if not is_streaming and stream != _FALSE:
        raise _wrong_type("stream", "boolean", stream)
    metadata = members.get("metadata")
    return ChatRequest(
        envelope, model, is_streaming, {} if metadata is None else _read_metadata(metadata)
    )


def _read_model(raw: msgspec.Raw | None) -> str:
    model = "" if raw is None else read_string(raw)
    if model is None:
        raise _wrong_type("model", "string", raw or b"")
    model = model.strip()
    if not model:
        raise InvalidRequest("model is required", code="model_required")
    return model


def _read_metadata(raw: msgspec.Raw) -> dict[str, str]:
    entries = read_members(raw)
    if entries is None:
        raise _wrong_type("metadata", "object", raw)
    metadata: dict[str, str] = {}
    for key, raw_value in entries.items():
        if len(metadata) == _METADATA_ENTRIES:
            raise _bad_metadata(f"metadata cannot contain more than {_METADATA_ENTRIES} entries")
        value = read_string(raw_value)
        if value is None:
            raise _bad_metadata(f"field metadata.{key} must be string, got non-string")
        if not 1 <= utf8_bytes(key) <= _METADATA_KEY_BYTES:
            raise _bad_metadata(
                f"metadata key length must be between 1 and {_METADATA_KEY_BYTES} bytes"
            )
        if utf8_bytes(value) > _METADATA_VALUE_BYTES:
            raise _bad_metadata(
                f'metadata value for key "{key}" exceeds {_METADATA_VALUE_BYTES} bytes'
            )
        metadata[key] = value
    return metadata


def _wrong_type(name: str, wanted: str, raw: bytes) -> InvalidRequest:
    kind = _KINDS.get(chr(memoryview(raw)[0]), "Number")
    return InvalidRequest(
        f"invalid request body: field {name} must be {wanted}, got {kind}", param=name
    )


def _bad_metadata(what: str) -> InvalidRequest:
    return InvalidRequest(f"invalid request body: {what}", param="metadata")
