"""From authored steps to a graph that can run: node types, references, what ends where."""

from collections.abc import Callable, Mapping, Sequence
from typing import get_type_hints

import attrs

from vsr.codec.chat_body import ChatBody
from vsr.config.step_reliability import read_step_reliability
from vsr.graph.bind import STEP_KEYS, Binder, Fields, key_of
from vsr.graph.block import FAIL, Block, CompiledStep, OnError, always_ends
from vsr.graph.compiled import CompiledGraph
from vsr.graph.conditions.compile import ConditionReader
from vsr.graph.env import RESERVED, Bound, Complain, Constant, Env, Path, Static
from vsr.graph.kinds import Kind, united
from vsr.graph.late import Condition, Expression, Predicate
from vsr.graph.nodes.call import CallNode
from vsr.graph.signal_trees import SignalTree, SignalTrees
from vsr.graph.text import TextTemplate
from vsr.graph.value import Failure
from vsr.registry import Registry
from vsr.resources.reliability import CallOverride

_OWN_KEYS = (*STEP_KEYS, "on_error")


@attrs.frozen
class Registries:
    """What graphs may ask for by name."""

    nodes: Registry[object]
    aggregates: Registry[object]
    transformers: Registry[object]
    conditions: Registry[object]


@attrs.frozen
class StepCompiler:
    """Compiles lists of steps; every fault is complained of."""

    registries: Registries
    complain: Complain
    open_graph: Callable[[str, Path, Env], CompiledGraph | None]
    """Returns a graph that runs inside the one being compiled; complains if it cannot."""
    signals: SignalTrees = attrs.field(factory=SignalTrees)
    """Gets the rule trees of its conditions."""
    is_nested: bool = False
    """Whether the graph runs inside another one, which only a value can leave."""
    binder: Binder = attrs.field(init=False)

    @binder.default
    def _make_binder(self) -> Binder:
        binder = Binder(
            self.complain,
            registries={
                "type": self.registries.nodes,
                "aggregate": self.registries.aggregates,
                "transformer": self.registries.transformers,
            },
        )
        conditions = ConditionReader(self.registries.conditions, binder)
        binder.readers[Block] = self._read_block
        binder.readers[Condition] = conditions.read
        binder.readers[Predicate] = conditions.read_predicate
        binder.readers[SignalTree] = self._read_signals
        binder.readers[Expression] = self._read_expression
        binder.readers[TextTemplate] = self._read_text
        binder.readers[CallOverride] = self._read_reliability
        binder.readers[CompiledGraph] = self._read_graph
        return binder

    def compile(self, raw: object, path: Path, env: Env) -> Block:
        """Return the list of steps at `path`."""
        if not isinstance(raw, (list, tuple)) or not raw:
            self.complain(path, "is no list of steps", "", "write at least one step")
            return Block(())
        steps: list[CompiledStep] = []
        kind: Kind = type(None)
        ended = ""
        for index, each in enumerate(raw):
            place = (*path, index)
            if ended:
                self.complain(place, "is never reached", f"{ended} ends the list", "remove it")
            step, kind = self._step(each, place, env, index)
            if step is None:
                continue
            steps.append(step)
            if step.is_named:
                env = env.with_names({step.id: Static(kind, zone=env.zone)})
            later = getattr(step.node.cls, "later_names", None)
            if later is not None:
                env = env.with_names(later(env, step.node.bound))
            ended = ended or (step.id if always_ends(step) else "")
        self._check_tails(raw, steps, path, env)
        return Block(tuple(steps), kind, env.names)

    def _step(
        self, raw: object, path: Path, env: Env, index: int
    ) -> tuple[CompiledStep | None, Kind]:
        if not isinstance(raw, Mapping):
            self.complain(path, "is no step", "", "write a mapping with a type")
            return None, type(None)
        cls = self._class(raw.get("type"), path)
        name = self._name(raw, path, env)
        error = raw.get("error")
        text = None
        if error is not None:
            text = self._read_text(error, (*path, "error"), env).value
        if cls is None:
            return None, object
        self.binder.refuse_shadowed("type", raw["type"], STEP_KEYS, (*path, "type"))
        own_error = "on_error" in {key_of(field.name) for field in attrs.fields(cls)}
        stripped = _OWN_KEYS if not own_error else STEP_KEYS
        own = {key: value for key, value in raw.items() if key not in stripped}
        on_error = FAIL if own_error else self._on_error(raw, path, env)
        fields = self.binder.fields(cls, own, path, env)
        faults = getattr(cls, "faults", None)
        for fault in () if faults is None else faults(env, fields.bound):
            self.complain(path, fault, "", "")
        kind = result_kind(fields)
        step = CompiledStep(
            name or f"{raw['type']}#{index}",
            str(raw["type"]),
            bool(name),
            fields,
            on_error,
            text if isinstance(text, TextTemplate) else None,
            kind,
        )
        return step, _with_failure(kind, on_error)

    def _class(self, name: object, path: Path) -> type | None:
        registry = self.registries.nodes
        if isinstance(name, str) and name in registry:
            return registry.get(name).config
        known = ", ".join(registry.names())
        self.complain((*path, "type"), f"is no node type: {name!r}", "", f"known: {known}")
        return None

    def _name(self, raw: Mapping[str, object], path: Path, env: Env) -> str:
        name = raw.get("id", "")
        if not isinstance(name, str) or (name and not name.isidentifier()):
            self.complain((*path, "id"), f"is {name!r}", "", "use letters, digits and _")
            return ""
        if name in env.names or name in RESERVED:
            self.complain((*path, "id"), f"{name!r} is taken", "", "choose another id")
        return name

    def _on_error(self, raw: Mapping[str, object], path: Path, env: Env) -> Bound:
        if "on_error" not in raw:
            return FAIL
        bound = self.binder.bind(raw["on_error"], OnError, (*path, "on_error"), env)
        return FAIL if bound == Constant(None) else bound

    def _check_tails(
        self, raw: Sequence[object], steps: list[CompiledStep], path: Path, env: Env
    ) -> None:
        """Check that nothing but `respond` follows a call that is handed out."""
        for index, step in enumerate(steps):
            if not _is_tail(step):
                continue
            if self.is_nested:
                what, mend = "a graph inside another one cannot hand out a call", "say `never`"
                self.complain((*path, index, "stream"), what, "", mend)
            if not env.may_hand_out:
                what, mend = (
                    "what a waiting client is told cannot be a handed out call",
                    "say `never`",
                )
                self.complain((*path, index, "stream"), what, "", mend)
            after = raw[index + 1] if index + 1 < len(raw) else None
            if after != {"type": "respond", "from": f"${step.id}"} and after != {
                "id": after.get("id") if isinstance(after, Mapping) else None,
                "type": "respond",
                "from": f"${step.id}",
            }:
                mend = f"let a plain `respond` of ${step.id} follow, or say `stream: never`"
                self.complain(
                    (*path, index, "stream"), "tail is not the graph's last call", "", mend
                )

    def _read_reliability(self, raw: object, path: Path, env: Env) -> Bound:
        del env
        if raw is None:
            return Constant(None)
        if not isinstance(raw, Mapping):
            self.complain(path, f"is {raw!r}", "", "write a mapping, as decisions have it")
            return Constant(None)
        return Constant(read_step_reliability(raw, path, self.complain))

    def _read_graph(self, raw: object, path: Path, env: Env) -> Bound:
        if not isinstance(raw, str):
            self.complain(path, f"is {raw!r}", "", "name a graph")
            return Constant(None)
        return Constant(self.open_graph(raw, path, env))

    def _read_block(self, raw: object, path: Path, env: Env) -> Bound:
        block = self.compile(raw, path, env)
        return Constant(block, block.kind)

    def _read_signals(self, raw: object, path: Path, env: Env) -> Bound:
        del env
        return self.signals.bind(raw, path, self.complain)

    def _read_expression(self, raw: object, path: Path, env: Env) -> Bound:
        bound = self.binder.bind(raw, object, path, env)
        return Constant(Expression(bound), bound.kind)

    def _read_text(self, raw: object, path: Path, env: Env) -> Constant:
        if not isinstance(raw, str):
            self.complain(path, f"is {raw!r}", "", "write a text")
            return Constant(None)
        template = TextTemplate(raw)
        for name in template.unknown({*env.names, "cause", "params"}):
            self.complain(path, f"uses {name!r}, which nothing provides", "", "")
        return Constant(template, str)


def result_kind(fields: Fields) -> Kind:
    """Return the type of a step's value."""
    own = getattr(fields.cls, "result_kind", None)
    if own is not None:
        found: Kind = own(fields.bound)
        return found
    hinted: Kind = get_type_hints(fields.cls.run).get("return", object)  # type: ignore[attr-defined]
    return hinted


def _with_failure(kind: Kind, on_error: Bound) -> Kind:
    """Return the type of a step's value with what may stand for it."""
    words = {on_error.value} if isinstance(on_error, Constant) else {"skip", "value"}
    more = {"skip": type(None), "value": Failure}
    return united([kind, *(more[word] for word in more if word in words)])


def _is_tail(step: CompiledStep) -> bool:
    stream = step.node.bound.get("stream")
    return step.node.cls is CallNode and isinstance(stream, Constant) and stream.value == "tail"


REQUEST = Static(ChatBody)
"""The client's request."""
