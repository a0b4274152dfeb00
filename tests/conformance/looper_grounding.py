"""The scripted classifiers of a looper fixture behind the port of the model runtime."""

import json
from collections.abc import Mapping
from typing import Any

import attrs
import trio

from tests.conformance.looper_case import Fields


@attrs.define(eq=False)
class ScriptedClassifiers:
    """Implements `routing.ports.Runtime`: a table for pairs of texts and one for answers."""

    grounding: Fields = attrs.field(factory=dict)
    """Of the turn; may be replaced at any time."""

    async def evaluate(self, bundle: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Answer the asks whose classifier exists; the others are unknown."""
        await trio.lowlevel.checkpoint()
        answers = {key: answer_to(key, ask, self.grounding) for key, ask in bundle.items()}
        return {key: answer for key, answer in answers.items() if answer is not None}


def answer_to(key: str, ask: bytes, grounding: Fields) -> bytes | None:
    """Return the answer to one ask; None where nobody knows.

    An ask is JSON: {premise, hypothesis} is answered by {entailment, contradiction}, and one that
    has an `answer` by {unsupported_spans}. The key plays no part.
    """
    del key
    try:
        asked = json.loads(ask)
    except ValueError:
        return None
    if not isinstance(asked, dict):
        return None
    if "premise" in asked and "nli" in grounding:
        return json.dumps(_pair(asked, grounding["nli"] or ())).encode()
    if "answer" in asked and "detector" in grounding:
        spans = _spans(asked["answer"], grounding["detector"] or ())
        return json.dumps({"unsupported_spans": spans}).encode()
    return None


def _pair(asked: Fields, rows: Any) -> Fields:  # noqa: ANN401  # YAML
    for row in rows:
        if (row["premise"], row["hypothesis"]) == (asked["premise"], asked.get("hypothesis")):
            return {name: row.get(name, 0.0) for name in ("entailment", "contradiction")}
    return {"entailment": 0.0, "contradiction": 0.0}


def _spans(answer: object, table: Any) -> object:  # noqa: ANN401  # YAML
    if isinstance(table, dict):
        return table.get(answer, [])
    return next((row["unsupported_spans"] for row in table if row["answer"] == answer), [])
