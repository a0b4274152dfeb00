"""Node type `assess`: let the model runtime or a verifier judge what was said."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

import attrs
import msgspec

from vsr.errors import CallFailed, GraphFailed
from vsr.graph.bind import SECONDS
from vsr.graph.block import Node
from vsr.graph.context import NodeContext
from vsr.graph.env import Bound, Constant, Deferred, known_of
from vsr.graph.verifier_calls import noted
from vsr.graph.worst import Estimator, Gap, Paths, Worst
from vsr.registry import Extension
from vsr.routing.ports import Fetch, NoRuntime, Runtime

_OK = 200
_DEFAULT_TIMEOUT_S = 60.0


@attrs.frozen
class Verifier:
    """A service over HTTP that judges one JSON object and answers with another."""

    url: str | None
    """Absolute, http or https. None: there is no such service, and the step fails."""
    request: Mapping[str, object]
    path: str = ""
    """Goes behind the URL's own path, like `/verify`."""
    timeout: Annotated[float | None, SECONDS] = None
    """None: a minute."""
    max_response_bytes: int = 32 * 1024 * 1024


@attrs.frozen
class AssessNode:
    """Asks for judgements; its value is the answers, as JSON values."""

    asks: Sequence[object] | None = None
    """For the model runtime, in one bundle: the value has an answer for each, null where the
    runtime does not know."""
    topic: str = "assess"
    """What the runtime is asked about; the key of each ask in the bundle starts with it."""
    verifier: Verifier | None = None
    """Asked over HTTP instead: the value is the object that it answers with."""

    def __attrs_post_init__(self) -> None:
        """Check that one of the two is asked."""
        if (self.asks is None) is (self.verifier is None):
            raise ValueError("give asks or a verifier")

    @staticmethod
    def worst_case(bound: Mapping[str, Bound], estimator: Estimator) -> Paths:
        """Return how long it may take: it calls no model."""
        del estimator
        verifier = bound.get("verifier")
        if verifier is None:
            why = "how long the model runtime takes is not known"
            return Paths(Worst(gaps=frozenset({Gap("time_s", why)})))
        timeout = verifier.parts.get("timeout") if isinstance(verifier, Deferred) else None
        if isinstance(verifier, Constant) and isinstance(verifier.value, Verifier):
            timeout = Constant(verifier.value.timeout)
        known = known_of(timeout).options or (None,)
        times = [each for each in known if isinstance(each, (int, float))]
        return Paths(Worst(time_s=max(times, default=_DEFAULT_TIMEOUT_S)))

    async def run(self, ctx: NodeContext) -> object:
        """Return the answers.

        Raises:
            CallFailed, UpstreamFailure: the verifier gave none.
            GraphFailed: the runtime failed.
        """
        ctx.note_start()
        if self.verifier is not None:
            return await _verify(self.verifier, ctx)
        bundle = {
            f"{self.topic}/{index}": msgspec.json.encode(ask)
            for index, ask in enumerate(self.asks or ())
        }
        if not bundle:
            return ()
        runtime = ctx.run.runtime
        if runtime is None or isinstance(runtime, NoRuntime):
            return (None,) * len(bundle)
        answers = await noted(ctx, "runtime", partial(_evaluate, runtime, bundle))
        return tuple(_decoded(answers.get(key)) for key in bundle)


async def _evaluate(runtime: Runtime, bundle: Mapping[str, bytes]) -> Mapping[str, bytes]:
    try:
        return await runtime.evaluate(bundle)
    except Exception as error:  # whatever the runtime's client raises, the step decides
        raise GraphFailed("the model runtime failed") from error


def _decoded(answer: bytes | None) -> object:
    """Return one answer; None where there is none that can be read."""
    if answer is None:
        return None
    try:
        return msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return None


async def _verify(verifier: Verifier, ctx: NodeContext) -> object:
    run = ctx.run
    if run.fetch is None:
        raise RuntimeError("this run has no way to a verifier")
    if not verifier.url:
        raise GraphFailed("there is no verifier to ask")
    return await noted(ctx, "http", partial(_fetch_verdict, verifier, verifier.url, run.fetch, ctx))


async def _fetch_verdict(
    verifier: Verifier, url: str, fetch: Fetch, ctx: NodeContext
) -> dict[str, object]:
    deadline = ctx.deadline_after(verifier.timeout or _DEFAULT_TIMEOUT_S)
    answer = await fetch(
        url.rstrip("/") + verifier.path if verifier.path else url,
        msgspec.json.encode(verifier.request),
        deadline,
        limit_bytes=verifier.max_response_bytes,
    )
    if answer.status != _OK:
        raise CallFailed(
            f"the verifier answered with status {answer.status}", backend_status=answer.status
        )
    try:
        return msgspec.json.decode(answer.body, type=dict[str, object])
    except msgspec.DecodeError:
        raise CallFailed("the verifier's answer is no JSON object") from None


ASSESS = Extension[Node](name="assess", config=AssessNode)
