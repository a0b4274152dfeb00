"""The worst case of one call, and how often steps are repeated at most."""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from vsr.graph.env import Bound, Constant, Deferred, Known, known_of
from vsr.graph.value import ModelRef
from vsr.graph.worst import Estimator, Gap, ModelBounds, Worst
from vsr.resources.reliability import CallOverride, CallPolicy

_OUTPUT_LIMITS = ("max_completion_tokens", "max_tokens")
ANY_MODEL = "*"
"""In `allow`: every model that the configuration has."""


def call_worst(
    names: Sequence[str] | None,
    bound: Mapping[str, Bound],
    estimator: Estimator,
) -> Worst:
    """Return the worst case of one call.

    Args:
        names: of the models that it may ask, of which it asks one; None: nobody can tell.
        bound: the fields of the step: `timeout`, `reliability` and `edits` are looked at.
        estimator: knows the models.
    """
    timeout = bound.get("timeout")
    override = bound.get("reliability")
    change = override.value if isinstance(override, Constant) else None
    change = change if isinstance(change, CallOverride) else None
    asked = _asked_tokens(bound.get("edits"))
    if names is None:
        why = "the models are parameters that are not given yet"
        if is_anything(bound):
            why = "a step may call any model"
        gaps = {Gap("attempts", why), Gap("output_tokens", why), Gap("cost_usd", why)}
        count = _attempts(change, CallPolicy())
        worst = Worst(1, count, 1, (asked or 0) * count, gaps=frozenset(gaps))
        return _timed(worst, timeout, None, "")
    found: Worst | None = None
    for name in names:
        each = _of_model(name, change, asked, estimator)
        each = _timed(each, timeout, _policy(change, estimator.bounds_of(name)), name)
        found = each if found is None else found.either(each)
    return found or Worst(1, 1, 1)


def _of_model(
    name: str, change: CallOverride | None, asked: int | None, estimator: Estimator
) -> Worst:
    known = estimator.bounds_of(name)
    gaps: set[Gap] = set()
    if known is None:
        gaps.add(Gap("attempts", f"the retries of {name} are not known"))
        known = ModelBounds()
    count = _attempts(change, known.policy)
    limits = [each for each in (asked, known.max_output_tokens) if each is not None]
    tokens = min(limits) if limits else estimator.default_output_tokens
    if tokens is None:
        gaps.add(Gap("output_tokens", f"{name} has no longest answer"))
    if known.price is None:
        gaps.add(Gap("cost_usd", f"{name} has no price"))
    elif tokens is None:
        gaps.add(Gap("cost_usd", f"{name} has no longest answer"))
    elif known.price.prompt_per_1m:
        gaps.add(Gap("cost_usd", "prompts cost, too, and the request decides how long they are"))
    output = (tokens or 0) * count
    cost = 0 if known.price is None else known.price.bound_nano_usd(0, output)
    return Worst(1, count, 1, output, cost, gaps=frozenset(gaps))


def _attempts(change: CallOverride | None, policy: CallPolicy) -> int:
    whole = policy if change is None else change.over(policy)
    return 1 + (0 if whole.retry is None else whole.retry.count)


def _policy(change: CallOverride | None, known: ModelBounds | None) -> CallPolicy:
    policy = CallPolicy() if known is None else known.policy
    return policy if change is None else change.over(policy)


def _timed(worst: Worst, timeout: Bound | None, policy: CallPolicy | None, name: str) -> Worst:
    timeout_s, is_open = _timeout_s(timeout), known_of(timeout).options is None
    limits = [timeout_s, None if policy is None else policy.total_s]
    known = [each for each in limits if each]
    if known:
        return attrs.evolve(worst, time_s=min(known))
    why = "a timeout is a parameter that is not given yet"
    if not is_open:
        why = f"a call of {name} has no timeout of its own" if name else "a call has no timeout"
    return attrs.evolve(worst, gaps=worst.gaps | {Gap("time_s", why)})


def _timeout_s(timeout: Bound | None) -> float | None:
    found = known_of(timeout).options or ()
    times = [float(each) for each in found if isinstance(each, (int, float))]
    return max(times) if times else None


def _asked_tokens(edits: Bound | None) -> int | None:
    """Return the longest answer that the last of a call's edits asks for, if it is known."""
    found: int | None = None
    for limit in _limits_in(edits):
        most = [each for each in limit.options or () if isinstance(each, int)]
        is_known = limit.options is not None and len(most) == len(limit.options)
        found = max(most) if is_known else None
    return found


def _limits_in(edits: Bound | None) -> Iterator[Known]:
    for edit in _members(edits):
        for name in _OUTPUT_LIMITS:
            for holder in (edit, _member(edit, "set")):
                limit = known_of(_member(holder, name))
                if limit.options != (None,):
                    yield limit


def _members(bound: Bound | None) -> Iterator[Bound]:
    if isinstance(bound, Deferred):
        yield from bound.parts.values()
    elif isinstance(bound, Constant) and isinstance(bound.value, tuple):
        yield from (Constant(each) for each in bound.value)


def _member(bound: Bound | None, name: str) -> Bound | None:
    if isinstance(bound, Deferred):
        return bound.parts.get(name)
    value = None if bound is None else bound.value
    if isinstance(value, Mapping):
        return Constant(value[name]) if name in value else None
    return Constant(getattr(value, name)) if hasattr(value, name) else None


def names_in(models: object) -> tuple[str, ...]:
    """Return the names that `models` says: a name, a candidate, lists of them, or nothing."""
    match models:
        case str():
            return (models,)
        case ModelRef():
            return (models.called_name,)
        case tuple() | list():
            return tuple(dict.fromkeys(name for each in models for name in names_in(each)))
        case _:
            return ()


def named_models(bound: Mapping[str, Bound]) -> tuple[str, ...] | None:
    """Return the names that a call's `model` may be, or what `allow` allows; None: not known."""
    model, allowed = known_of(bound.get("model")), bound.get("allow")
    known = model if model.options is not None or allowed is None else known_of(allowed)
    if known.options is None or (model.options is None and is_anything(bound)):
        return None
    return names_in(known.options)


def named_in(field: Bound | None) -> tuple[str, ...]:
    """Return the models that a field lists, as far as they are known."""
    return names_in(known_of(field).options or ())


def is_anything(bound: Mapping[str, Bound]) -> bool:
    """Return whether `allow` says that a call may go to any model."""
    options = known_of(bound.get("allow")).options
    return options is not None and ANY_MODEL in names_in(options)


def repeated(
    bound: Mapping[str, Bound], fields: Sequence[str], most: Bound | None
) -> tuple[int, frozenset[Gap]]:
    """Return how often a step's list of steps runs at most, and what is not known of it.

    Args:
        bound: the fields of the step.
        fields: of which one says how often: a list, or a number.
        most: the field that bounds it.
    """
    counts = [known_of(bound[name]).most for name in fields if _is_there(bound.get(name))]
    ceiling = known_of(most).most
    known = [each for each in (*counts, ceiling) if each is not None]
    if known:
        return min(known), frozenset()
    why = "how often steps are repeated is a parameter that is not given yet"
    quantities = ("calls", "attempts", "output_tokens", "cost_usd", "time_s")
    return 1, frozenset(Gap(each, why) for each in quantities)  # type: ignore[arg-type]  # of them


def is_unbounded(bound: Mapping[str, Bound], fields: Sequence[str]) -> bool:
    """Return whether only a result says how often, and no `max_items` bounds it."""
    most = bound.get("max_items")
    if _is_there(most):
        return False
    found = [bound[name] for name in fields if _is_there(bound.get(name))]
    return any(not known_of(each).is_given for each in found)


def _is_there(bound: Bound | None) -> bool:
    return bound is not None and not (isinstance(bound, Constant) and bound.value is None)
