"""Which models an algorithm that asks several ones asks, as validation and compilation see it."""

from collections.abc import Iterable

from vsr.config.document.decisions import Decision, ModelRef
from vsr.config.document.looper_algorithms import FusionAlgorithmConfig

_FEWEST = {"confidence": 2, "ratings": 2}


def called_name(ref: ModelRef) -> str:
    """Return the name that is called: the adapter's if there is one."""
    return ref.lora_name or ref.model


def unique_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return `names` without blanks around them, in order, each once and none that is blank."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, names))))


def panel_of(decision: Decision, block: FusionAlgorithmConfig | None) -> tuple[str, ...]:
    """Return the panel of a fusion: its own models, else the candidates."""
    own = () if block is None else unique_names(block.analysis_models)
    return own or unique_names(map(called_name, decision.modelRefs))


def fewest_candidates(algorithm: str) -> int:
    """Return how many candidates an algorithm needs to run."""
    return _FEWEST.get(algorithm, 1)


def has_candidates(decision: Decision) -> bool:
    """Return whether a decision's algorithm has enough candidates; else one model answers.

    Source: the reference, which then goes on as with a single model.
    """
    algorithm = decision.algorithm
    if algorithm is None:
        return False
    if algorithm.type == "fusion":
        return bool(panel_of(decision, algorithm.fusion))
    return len(decision.modelRefs) >= fewest_candidates(algorithm.type)
