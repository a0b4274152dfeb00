"""What signals may know of a conversation: its texts and the shape of its turns."""

import msgspec

from vsr.codec.chat_messages import Content, Conversation, Message, TextMessage, text_of
from vsr.codec.strict_json import decode


class ChatFacts(msgspec.Struct, gc=False):
    """Texts and counts of one conversation.

    A Struct, since one is made per request and costs half of what an attrs class does.
    """

    current_user_text: str = ""
    """The last user text that is not empty."""
    prior_user_texts: list[str] = []
    """Earlier user texts, oldest first."""
    non_user_texts: list[str] = []
    """Texts of system, developer and assistant turns in order; a tool's output is no text."""
    user_messages: int = 0
    system_messages: int = 0
    assistant_messages: int = 0
    tool_messages: int = 0
    """Each is one tool result."""
    user_images: int = 0
    tool_definitions: int = 0
    tool_calls: int = 0
    tool_call_names: list[str] = []
    has_developer_message: bool = False
    has_assistant_reply: bool = False
    last_role: str = ""
    last_user_follows_tool_result: bool = False
    """The last message is a user's and comes right behind a tool result."""

    @property
    def last_is_tool_result(self) -> bool:
        """Return whether the last message is a tool result."""
        return self.last_role == "tool"

    @property
    def is_empty(self) -> bool:
        """Return whether the conversation has no message, no tool and no role."""
        return not (
            self.last_role
            or self.user_messages
            or self.system_messages
            or self.assistant_messages
            or self.tool_messages
            or self.tool_definitions
        )


class _Function(msgspec.Struct):
    name: str | None = None


class _ToolCall(msgspec.Struct):
    function: _Function | None = None


_TOOL_CALLS = msgspec.json.Decoder(list[_ToolCall])
_IMAGE_TYPES = frozenset({"image_url", "input_image"})


def read_facts(conversation: Conversation) -> ChatFacts:
    """Walk the conversation once."""
    facts = ChatFacts(tool_definitions=len(conversation.definitions))
    role = ""
    follows_tool_result = False
    for message, content in zip(conversation.messages, conversation.contents, strict=True):
        follows_tool_result = role == "tool"
        role = message.role or ""
        if role == "user":
            if isinstance(content, str) and content and not facts.current_user_text:
                facts.user_messages += 1
                facts.current_user_text = content
            else:
                _add_user(facts, content)
        elif role == "assistant":
            _add_assistant(facts, message, content)
        elif role == "system":
            facts.system_messages += 1
            _add_non_user(facts, content)
        elif role == "developer":
            facts.has_developer_message = True
            _add_non_user(facts, content)
        elif role == "tool":
            facts.tool_messages += 1
    facts.last_role = role
    facts.last_user_follows_tool_result = role == "user" and follows_tool_result
    return facts


def _add_user(facts: ChatFacts, content: Content) -> None:
    facts.user_messages += 1
    if isinstance(content, list):
        facts.user_images += sum(part.type in _IMAGE_TYPES for part in content)
    text = text_of(content)
    if not text:
        return
    if facts.current_user_text:
        facts.prior_user_texts.append(facts.current_user_text)
    facts.current_user_text = text


def _add_non_user(facts: ChatFacts, content: Content) -> bool:
    text = text_of(content)
    if text:
        facts.non_user_texts.append(text)
    return bool(text)


def _add_assistant(facts: ChatFacts, message: Message | TextMessage, content: Content) -> None:
    facts.assistant_messages += 1
    if _add_non_user(facts, content):
        facts.has_assistant_reply = True
    if not message.tool_calls:
        return
    try:
        calls = decode(_TOOL_CALLS, message.tool_calls)
    except msgspec.ValidationError:
        calls = []
    facts.tool_calls += len(calls)
    facts.tool_call_names += [
        call.function.name for call in calls if call.function is not None and call.function.name
    ]
