"""An Anthropic Messages request as routing reads it.

Source: the reference's routing rules "Anthropic Messages extraction" and "Context token count".
"""

from collections.abc import Mapping, Sequence

import msgspec

from vsr.codec.chat import ChatRequest, read_chat
from vsr.codec.chat_facts import ChatFacts
from vsr.codec.chat_messages import read_entries, read_members, read_string
from vsr.codec.chat_tokens import MAX_TOKENS, EnvelopeSize, text_tokens
from vsr.codec.strict_json import NULL, utf8_bytes

Members = Mapping[str, msgspec.Raw]

_MESSAGE_TOKENS = 4
_TOOL_TOKENS = 8
"""Framing of a tool's use, result and definition each."""
_MAX_RESERVE_DIGITS = 20


class AnthropicRequest(ChatRequest):
    """One request; envelope, model and metadata are those of a chat request."""

    @property
    def facts(self) -> ChatFacts:
        """Return the conversation's texts and counts."""
        if self._facts is None:
            self._facts = _read_facts(self.envelope.members)
        return self._facts

    def is_surely_shorter_than(self, tokens: int) -> bool:
        """Return False: no bound is known that is cheaper than the count."""
        del tokens
        return False

    @property
    def token_count(self) -> int:
        """Return the larger of the text's estimate and the envelope's floor."""
        if self._token_count is None:
            floor = _measure(self.envelope.members).tokens
            estimate = text_tokens(utf8_bytes(self.context_text))
            self._token_count = min(max(estimate, floor), MAX_TOKENS)
        return self._token_count


def read_anthropic(body: bytes) -> AnthropicRequest:
    """Open the envelope and check the members that every request is checked for.

    Raises:
        InvalidRequest: `body` is not a JSON object, or one of those members is missing or wrong.
    """
    chat = read_chat(body)
    return AnthropicRequest(chat.envelope, chat.model, chat.is_streaming, chat.metadata)


class _Turn(msgspec.Struct):
    role: str
    text: str
    """Of a string, or of the text blocks, with spaces between."""
    blocks: Sequence[Members] = ()
    """Content blocks; those that are no object have no members."""
    raw_blocks: Sequence[msgspec.Raw] = ()


def _read_turns(members: Members) -> list[_Turn]:
    turns = []
    system = members.get("system", NULL)
    if system != NULL:
        turns.append(_read_content("system", system))
    for message in read_entries(members.get("messages", NULL)) or ():
        parts = read_members(message) or {}
        role = read_string(parts.get("role", NULL)) or ""
        turns.append(_read_content(role, parts.get("content", NULL)))
    return turns


def _read_content(role: str, content: msgspec.Raw) -> _Turn:
    text = read_string(content)
    if text is not None:
        return _Turn(role, text)
    raw_blocks = read_entries(content) or []
    blocks = [read_members(block) or {} for block in raw_blocks]
    texts = [_text(block, "text") for block in blocks if _text(block, "type") in {"text", ""}]
    return _Turn(role, " ".join(filter(None, texts)), blocks, raw_blocks)


def _text(members: Members, name: str) -> str:
    return read_string(members.get(name, NULL)) or ""


def _read_facts(members: Members) -> ChatFacts:
    definitions = read_entries(members.get("tools", NULL)) or ()
    facts = ChatFacts(tool_definitions=len(definitions))
    for turn in _read_turns(members):
        follows_tool_result = facts.last_is_tool_result
        facts.last_role = turn.role
        facts.last_user_follows_tool_result = False
        if turn.role == "user":
            _add_user(facts, turn, follows_tool_result=follows_tool_result)
        elif turn.role == "assistant":
            _add_assistant(facts, turn)
        elif turn.role == "system":
            facts.system_messages += 1
            facts.non_user_texts += [turn.text] if turn.text else []
    return facts


def _add_user(facts: ChatFacts, turn: _Turn, *, follows_tool_result: bool) -> None:
    facts.user_messages += 1
    for block in turn.blocks:
        source = read_members(block.get("source", NULL)) or {}
        facts.user_images += _text(block, "type") == "image" and _text(source, "type") == "base64"
    if any(_text(block, "type") == "tool_result" for block in turn.blocks):
        facts.tool_messages += 1
        facts.last_role = "tool"  # as such a turn would be in a chat request
    else:
        facts.last_user_follows_tool_result = follows_tool_result
    if turn.text:
        if facts.current_user_text:
            facts.prior_user_texts.append(facts.current_user_text)
        facts.current_user_text = turn.text


def _add_assistant(facts: ChatFacts, turn: _Turn) -> None:
    facts.assistant_messages += 1
    if turn.text:
        facts.non_user_texts.append(turn.text)
        facts.has_assistant_reply = True
    for block in turn.blocks:
        if _text(block, "type") == "tool_use":
            facts.tool_calls += 1
            name = _text(block, "name")
            facts.tool_call_names += [name] if name else []


def _measure(members: Members) -> EnvelopeSize:
    """Weigh a request: its turns, its tools, and what it may be answered with."""
    size = EnvelopeSize()
    for turn in _read_turns(members):
        size.framing_tokens += _MESSAGE_TOKENS
        size.text_bytes += utf8_bytes(turn.role)
        if not turn.raw_blocks:
            size.text_bytes += utf8_bytes(turn.text)
        for block, raw in zip(turn.blocks, turn.raw_blocks, strict=True):
            _add_block(size, block, raw)
    for tool in read_entries(members.get("tools", NULL)) or ():
        size.framing_tokens += _TOOL_TOKENS
        size.add_structured(tool)
    size.add_structured(members.get("tool_choice", NULL))
    limit = members.get("max_tokens", NULL)
    literal = bytes(limit)
    if literal.isdigit():
        size.output_reserve_tokens = min(int(literal[:_MAX_RESERVE_DIGITS]), MAX_TOKENS)
    else:
        size.add_structured(limit)
    return size


def _add_block(size: EnvelopeSize, block: Members, raw: msgspec.Raw) -> None:
    match _text(block, "type"):
        case "text" | "":
            size.add_text(block.get("text", raw))
        case "image":
            size.images += 1
        case "tool_use":
            size.framing_tokens += _TOOL_TOKENS
            for name in ("id", "type", "name"):
                size.add_text(block.get(name, NULL))
            size.add_structured(block.get("input", NULL))
        case "tool_result":
            size.framing_tokens += _TOOL_TOKENS
            size.add_text(block.get("tool_use_id", NULL))
            _add_result(size, block.get("content", NULL))
        case _:
            size.add_structured(raw)


def _add_result(size: EnvelopeSize, content: msgspec.Raw) -> None:
    parts = read_entries(content)
    for part in [content] if parts is None else parts:
        if _text(read_members(part) or {}, "type") == "image":
            size.images += 1
        else:
            size.add_structured(part)
