"""Documents with one decision that asks several models."""

from vsr.config.report import Report
from vsr.config.source import Checked, check_bytes
from vsr.resources.graph import GraphCall

DOCUMENT = """
providers:
  models:
    - {{name: a, backend_refs: [{{endpoint: "10.0.0.1"}}]}}
    - {{name: b, backend_refs: [{{endpoint: "10.0.0.2"}}]}}
routing:
  modelCards: [{{name: b, loras: [{{name: law}}]}}]
  decisions:
    - name: d
      modelRefs: {refs}
      algorithm: {{type: {type}{block}}}
      {more}
{looper}
"""
REFS = "[{model: a, weight: 2}, {model: b, lora_name: law, use_reasoning: true}]"
MIB = 1_048_576


def checked(
    kind: str, block: str = "", *, refs: str = REFS, more: str = "", looper: str = ""
) -> Checked:
    """Return the document with one decision; `block` without the key of the algorithm."""
    written = f", {kind}: {{{block}}}" if block else ""
    around = f"global: {{integrations: {{looper: {{{looper}}}}}}}" if looper else ""
    text = DOCUMENT.format(type=kind, block=written, refs=refs, more=more, looper=around)
    return check_bytes(text.encode(), {}, Report("doc.yaml"))


def call_of(result: Checked) -> GraphCall:
    """Return what the only decision calls."""
    [decision] = result.snapshot.programs[0].decisions
    assert decision.algorithm.graph is not None
    return decision.algorithm.graph
