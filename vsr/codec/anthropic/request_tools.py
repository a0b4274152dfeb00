"""Tools and tool choice of a request, from either API to the other."""

from collections.abc import Mapping

import msgspec

from vsr.codec.anthropic.json_value import FALSE, TRUE, JsonValue, encode, is_text
from vsr.codec.anthropic.protocol_warning import Reason, WarningLog
from vsr.codec.anthropic.side_record import Origin
from vsr.codec.chat_messages import read_entries, read_members, read_string
from vsr.codec.envelope import open_envelope
from vsr.codec.strict_json import NULL
from vsr.errors import InvalidRequest

Members = Mapping[str, msgspec.Raw]

CHOICE_MEMBERS = ("tool_choice", "parallel_tool_calls")
"""Members of a chat request that an Anthropic `tool_choice` becomes."""

_CHAT_CHOICES = {"auto": "auto", "none": "none", "any": "required"}
_ANTHROPIC_CHOICES = {"none": "none", "required": "any", "any": "any"}
_OBJECT = msgspec.Raw(b'"object"')
_NO_PARAMETERS = msgspec.Raw(b'{"type":"object","properties":{}}')


def tools_to_chat(tools: msgspec.Raw, log: WarningLog, openai_log: WarningLog) -> list[Origin]:
    """Translate an Anthropic request's tools; those that the provider runs have no counterpart."""
    origins = []
    for at, tool in enumerate(read_entries(tools) or ()):
        members = read_members(tool) or {}
        kind = members.get("type", NULL)
        if kind != NULL and read_string(kind) != "custom":
            log.info(Reason.SERVER_TOOL_CAPTURED, f"tools[{at}].type")
            openai_log.lossy(Reason.SERVER_TOOL_DROP, f"tools[{at}].type")
            origins.append(Origin((), tool))
        elif not is_text(members.get("name")):
            log.error(Reason.MISSING_NAME, f"tools[{at}].name")
        else:
            origins.append(Origin([_function(members, f"tools[{at}]", log)], tool))
    return origins


def tool_choice_to_chat(choice: msgspec.Raw, log: WarningLog) -> dict[str, JsonValue]:
    """Return the chat members that an Anthropic request's `tool_choice` stands for."""
    if choice == NULL:
        return {}
    chat: dict[str, JsonValue] = {}
    members = read_members(choice) or {}
    kind = read_string(members.get("type", NULL)) or ""
    if kind in _CHAT_CHOICES:
        chat["tool_choice"] = _CHAT_CHOICES[kind]
    elif kind == "tool" and is_text(members.get("name")):
        chat["tool_choice"] = {"type": "function", "function": {"name": members["name"]}}
    else:
        log.lossy(Reason.UNSUPPORTED_TOOL_CHOICE, "tool_choice.type")
    if members.get("disable_parallel_tool_use") == TRUE:
        chat["parallel_tool_calls"] = False
    return chat


def tool_to_anthropic(tool: msgspec.Raw, field: str, log: WarningLog) -> msgspec.Raw | None:
    """Translate one tool of a chat request; None if it is no function.

    Raises:
        InvalidRequest: the function has no name.
    """
    members = read_members(tool) or {}
    if read_string(members.get("type", NULL)) != "function":
        log.lossy(Reason.UNSUPPORTED_TYPE, f"{field}.type")
        return None
    function = read_members(members.get("function", NULL)) or {}
    if not is_text(function.get("name")):
        raise InvalidRequest(f"{field} has no function name", param=f"{field}.function.name")
    anthropic: dict[str, JsonValue] = {"type": "custom", "name": function["name"]}
    description = (read_string(function.get("description", NULL)) or "").strip()
    if description:
        anthropic["description"] = description
    anthropic["input_schema"] = _input_schema(function.get("parameters", NULL), field, log)
    return encode(anthropic)


def tool_choice_to_anthropic(members: Members) -> JsonValue:
    """Return the `tool_choice` for a chat request's choice and wish for parallel calls."""
    choice = members.get("tool_choice", NULL)
    is_single = members.get("parallel_tool_calls") == FALSE
    if choice == NULL and not (is_single and members.get("tools", NULL) != NULL):
        return None
    function = read_members((read_members(choice) or {}).get("function", NULL)) or {}
    anthropic: dict[str, JsonValue]
    if is_text(function.get("name")):
        anthropic = {"type": "tool", "name": function["name"]}
    else:
        anthropic = {"type": _ANTHROPIC_CHOICES.get(read_string(choice) or "", "auto")}
    if is_single and anthropic["type"] != "none":
        anthropic["disable_parallel_tool_use"] = True
    return anthropic


def _function(members: Members, field: str, log: WarningLog) -> msgspec.Raw:
    function: dict[str, JsonValue] = {"name": members["name"]}
    if is_text(members.get("description")):
        function["description"] = members["description"]
    schema = members.get("input_schema", NULL)
    if read_members(schema) is not None:
        function["parameters"] = schema
    else:
        log.error(Reason.INVALID_SCHEMA, f"{field}.input_schema")
    return encode({"type": "function", "function": function})


def _input_schema(parameters: msgspec.Raw, field: str, log: WarningLog) -> msgspec.Raw:
    """Return the schema with the type that the Messages API asks for; other bytes stay."""
    members = read_members(parameters)
    if members is None:
        if parameters != NULL:
            log.error(Reason.INVALID_SCHEMA, f"{field}.function.parameters")
        return _NO_PARAMETERS
    if members.get("type") == _OBJECT:
        return parameters
    return msgspec.Raw(open_envelope(bytes(parameters)).spliced({"type": bytes(_OBJECT)}))
