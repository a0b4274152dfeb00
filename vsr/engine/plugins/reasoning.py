"""Reasoning of one reference to a model: what the resources say, compiled."""

import msgspec

from vsr.codec.dialects import Dialect, dialect_of
from vsr.codec.edits import BodyEdit
from vsr.codec.reasoning import ReasoningWish, compile_reasoning
from vsr.resources.cluster import Cluster
from vsr.resources.program import ModelRef


class Reasoning(msgspec.Struct, frozen=True):
    """What a decision does to the reasoning of one of its models."""

    mode: str
    """`on` or `off`, for evidence and diagnostic headers."""
    edit: BodyEdit | None
    """None leaves the client's own fields alone."""


def cluster_dialect(cluster: Cluster) -> Dialect:
    """Return what the backends of `cluster` speak; they are alike but for their address."""
    host = cluster.endpoints[0].host if cluster.endpoints else ""
    return dialect_of(cluster.provider, host, cluster.reasoning_transport)


def ref_reasoning(cluster: Cluster, ref: ModelRef, default_effort: str | None) -> Reasoning:
    """Return the reasoning of `ref`, a decision's reference to the model of `cluster`.

    Args:
        cluster: serves the model, or the model whose adapter is asked for.
        ref: names it.
        default_effort: the document's, for references that name none.
    """
    wish = ReasoningWish(
        use_reasoning=ref.use_reasoning,
        mode=ref.reasoning_mode,
        effort=ref.reasoning_effort,
        default_effort=default_effort,
    )
    transport = cluster_dialect(cluster).reasoning_transport
    return Reasoning(wish.evidence, compile_reasoning(cluster.reasoning, transport, wish))
