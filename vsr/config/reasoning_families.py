"""The built-in reasoning families.

Source: the canonical configuration document, "Built-in reasoning families".
"""

from collections.abc import Mapping

from vsr.resources.reasoning import ReasoningFamily, ReasoningKind, ReasoningMode

_ON = ReasoningMode.ENABLED
_OFF = ReasoningMode.DISABLED
_ADAPTIVE = ReasoningMode.ADAPTIVE


def _switch(parameter: str, *modes: ReasoningMode) -> ReasoningFamily:
    """Return a family whose control is a boolean; the first mode is the default."""
    return ReasoningFamily(
        ReasoningKind.CHAT_TEMPLATE_KWARGS, parameter, modes=modes, default_mode=modes[0]
    )


def _effort(
    levels: str,
    *modes: ReasoningMode,
    parameter: str = "reasoning_effort",
    off: str | None = None,
    activation: str | None = None,
    flags: Mapping[str, str] | None = None,
) -> ReasoningFamily:
    """Return a family with levels: in rising order, the default one in stars."""
    words = levels.split()
    default = next((word.strip("*") for word in words if word.startswith("*")), None)
    return ReasoningFamily(
        ReasoningKind.REASONING_EFFORT,
        parameter,
        levels=tuple(word.strip("*") for word in words),
        default_level=default,
        modes=modes,
        default_mode=modes[0],
        activation_parameter=activation,
        effort_flags=flags or {},
        disabled_level=off,
    )


REASONING_FAMILIES: Mapping[str, ReasoningFamily] = {
    "claude-effort-adaptive": _effort(
        "low medium *high* xhigh max", _ADAPTIVE, _OFF, parameter="effort"
    ),
    "claude-effort-always-on": _effort(
        "low medium *high* xhigh max", _ADAPTIVE, parameter="effort"
    ),
    "claude-effort-opt-in": _effort(
        "low medium *high* xhigh max", _OFF, _ADAPTIVE, parameter="effort"
    ),
    "deepseek": _effort("low *high* max", _ON, _OFF),
    "deepseek-v3.1": _switch("thinking", _ON, _OFF),
    "deepseek-v3.2": _switch("thinking", _ON, _OFF),
    "gemini-flash-four-level-medium": _effort("minimal low *medium* high", _ON),
    "gemini-flash-three-level-medium": _effort("low *medium* high", _ON),
    "gemma4": _switch("enable_thinking", _OFF, _ON),
    "glm": _switch("enable_thinking", _ON, _OFF),
    "glm-5.2": _effort("high *max*", _ON, _OFF, activation="enable_thinking"),
    "glm-5.3": _effort("low high *max*", _ON),
    "gpt": _effort("minimal low *medium* high xhigh max", _ON, _OFF, off="none"),
    "gpt-5.4": _effort("low *medium* high xhigh", _OFF, _ON, off="none"),
    "gpt-5.5": _effort("low *medium* high xhigh", _ON, _OFF, off="none"),
    "gpt-5.6": _effort("low *medium* high xhigh max", _ON, _OFF, off="none"),
    "gpt-6-astra": _effort("low medium high xhigh max", _ON),
    "gpt-oss": _effort("low *medium* high", _ON),
    "grok-4.3": _effort("*low* medium high", _ON, _OFF, off="none"),
    "grok-4.5": _effort("low medium *high*", _ON),
    "grok-4.6": _effort("low medium *high* xhigh", _ON),
    "hunyuan": _switch("enable_thinking", _ON, _OFF),
    "hunyuan-hy3": _effort("low *high*", _OFF, _ON, off="no_think"),
    "hunyuan-hy4": _effort("*high*", _ON, _OFF, off="no_think"),
    "inkling": _effort("minimal low medium *high* xhigh max", _ON, _OFF, off="none"),
    "kimi-k2": _switch("thinking", _ON, _OFF),
    "kimi-k2-always-on": _switch("thinking", _ON),
    "kimi-k3": _effort("low high *max*", _ON),
    "mimo": _switch("enable_thinking", _ON, _OFF),
    "minimax-m3": ReasoningFamily(
        ReasoningKind.REASONING_MODE,
        "thinking_mode",
        modes=(_ADAPTIVE, _OFF, _ON),
        default_mode=_ADAPTIVE,
    ),
    "mistral-none-high": _effort("*high*", _OFF, _ON, off="none"),
    "muse-glimmer": _effort("low medium *high* xhigh", _ON, parameter="reasoning_strength"),
    "muse-spark": _effort("minimal low medium high xhigh", _ON),
    "muse-spark-1.3": _effort("minimal low medium high xhigh max", _ON),
    "nemotron-super": _effort(
        "low *high*", _ON, _OFF, activation="enable_thinking", flags={"low": "low_effort"}
    ),
    "nemotron-thinking-toggle": _switch("enable_thinking", _ON, _OFF),
    "nemotron-ultra": _effort(
        "medium *high*", _ON, _OFF, activation="enable_thinking", flags={"medium": "medium_effort"}
    ),
    "qwen3": _switch("enable_thinking", _ON, _OFF),
    "qwen3-always-on": _switch("enable_thinking", _ON),
    "qwen3.8": _effort("low medium *xhigh*", _ON, _OFF, activation="enable_thinking"),
    "qwen3.8-always-on": _effort("low medium *xhigh*", _ON, activation="enable_thinking"),
    "step-3.7": _effort("low *medium* high", _ON),
}
