"""The scripted world: model servers on a network in memory, a model runtime, verifiers."""

import random
from collections.abc import Collection, Mapping, Sequence

import attrs
import msgspec
import trio

from vsr.deadline import Deadline
from vsr.demo.faults import Fault
from vsr.demo.reply import Reply, Seen, answer
from vsr.demo.script import Script
from vsr.demo.server import CallEnd, DemoModel
from vsr.dryrun.answers import (
    Written,
    assumed_logprobs,
    assumed_reply,
    assumed_usage,
    read_asked,
)
from vsr.dryrun.scenario import (
    FaultScript,
    Latency,
    ModelScript,
    RuntimeScript,
    Scenario,
    Shape,
    Turn,
    VerifierScript,
)
from vsr.errors import DeadlineExceeded, UpstreamConnectFailure
from vsr.headers import Headers
from vsr.network.memory import MemoryNetwork
from vsr.resources.cluster import Cluster, HttpVersion
from vsr.routing.ports import CallAnswer

_ASSUMED_LATENCY = Latency(Shape.FIXED, 1.0)
FIRST_PORT = 10_000
_SAID = ("logprobs", "reply", "usage")
"""Kinds of assumptions that are a part of an answer."""
_TICK_S = 1e-9
"""Between calls that are equally fast: the one that began first ends first."""


@attrs.define(eq=False)
class Assumed:
    """What the scenario does not say and the run has made up."""

    things: dict[str, dict[str, None]] = attrs.field(factory=dict)
    """By kind of thing, the names of what it was made up for, in order."""

    def note(self, kind: str, name: str = "") -> None:
        """Take note."""
        self.things.setdefault(kind, {})[name] = None

    def told(self, speakers: Collection[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return kinds and names, both in alphabetical order.

        Args:
            speakers: models that have said anything; what the others would have said is left out.
        """
        found: list[tuple[str, tuple[str, ...]]] = []
        for kind, names in sorted(self.things.items()):
            kept = [name for name in sorted(names) if kind not in _SAID or name in speakers]
            if kept:
                found.append((kind, tuple(kept)))
        return tuple(found)


@attrs.define(eq=False)
class World:
    """What all scripted parts of one run share."""

    scenario: Scenario
    seed: int
    assumed: Assumed = attrs.field(factory=Assumed)
    arrivals: int = 0

    def delay(self, latency: Latency | None, kind: str, name: str, number: int) -> float:
        """Return how long one call takes; calls that arrive later always end later."""
        self.arrivals += 1
        if latency is None:
            self.assumed.note("latency", name)
            latency = _ASSUMED_LATENCY
        return latency.draw(self.seed, f"{kind}/{name}/{number}") + self.arrivals * _TICK_S


@attrs.frozen
class TurnScript(Script):
    """The demo script of one call, and what it answers."""

    turn: Turn = attrs.field(factory=Turn)
    number: int = 0


@attrs.define(eq=False)
class ScriptedModel:
    """Says how each call of one model goes, at any of its endpoints."""

    name: str
    script: ModelScript
    world: World
    count: int = 0
    """Requests that have arrived."""

    def for_call(self, number: int | None, headers: Headers) -> Script:
        """Return the script of one call; see `vsr.demo.server.Scripted`."""
        del headers
        if number is None:
            return Script(model=self.name)
        at, self.count = self.count, self.count + 1
        turn = self.script.turn(at)
        script = TurnScript(
            model=self.name,
            latency_s=self.world.delay(turn.latency, "model", self.name, at),
            chunk_interval_s=turn.chunk_interval_s or 0.0,
            turn=turn,
            number=at,
        )
        fault = self._met(turn.fault, at)
        if fault is None:
            return script
        return attrs.evolve(
            script,
            fault=fault.kind,
            status=fault.status,
            retry_after_s=fault.retry_after_s,
            stall_s=fault.late_s,
            cut_after=fault.after_events,
        )

    def respond(self, seen: Seen, script: Script) -> Reply:
        """Return the answer to one request."""
        if isinstance(script, TurnScript) and script.fault not in _WITHOUT_REPLY:
            return self._write(seen, script)
        return answer(seen, script)

    def _write(self, seen: Seen, script: TurnScript) -> Reply:
        turn, asked, assumed = script.turn, read_asked(seen.body), self.world.assumed
        reply, usage = turn.reply, turn.usage
        if reply is None:
            assumed.note("reply", self.name)
            reply = assumed_reply(self.name)
        if asked.logprobs and reply.logprobs is None:
            assumed.note("logprobs", self.name)
            reply = assumed_logprobs(reply)
        if usage is None and not turn.no_usage:
            assumed.note("usage", self.name)
            usage = assumed_usage(seen.body, reply)
        name = asked.model or self.name
        written = Written(f"chatcmpl-dry-{self.name}-{script.number}", name, reply, usage)
        return written.render(asked, seen.path)

    def _met(self, fault: FaultScript | None, number: int) -> FaultScript | None:
        if fault is None or fault.kind is None or fault.rate >= 1:
            return None if fault is None or fault.kind is None else fault
        seed = f"{self.world.seed}/fault/{self.name}/{number}"
        return fault if random.Random(seed).random() < fault.rate else None  # noqa: S311  # a simulation


class ScriptedRuntime(msgspec.Struct, frozen=True, eq=False):
    """Implements `routing.ports.Runtime`."""

    world: World
    script: RuntimeScript

    async def evaluate(self, bundle: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Answer what the scenario has an answer for."""
        if self.script.latency is not None:
            await trio.sleep(self.world.delay(self.script.latency, "runtime", "", 0))
        answers: dict[str, bytes] = {}
        for key in bundle:
            topic = key.rpartition("/")[0]
            for name in (key, topic):
                if name in self.script.answers:
                    answers[key] = msgspec.json.encode(self.script.answers[name])
                    break
            else:
                self.world.assumed.note("no answer of the runtime", topic or key)
        return answers


class ScriptedFetch(msgspec.Struct, frozen=True, eq=False):
    """Implements `routing.ports.Fetch`."""

    world: World
    scripts: Mapping[str, VerifierScript]

    async def __call__(
        self, url: str, body: bytes, deadline: Deadline, *, limit_bytes: int
    ) -> CallAnswer:
        """Return the scenario's answer; nobody listens at a URL that it does not have."""
        del body, limit_bytes
        script = self.scripts.get(url)
        if script is None:
            self.world.assumed.note("no verifier", url)
            raise UpstreamConnectFailure
        with trio.CancelScope(deadline=deadline.at):
            await trio.sleep(self.world.delay(script.latency, "verifier", url, 0))
            return CallAnswer(script.status, Headers(), msgspec.json.encode(script.answer))
        raise DeadlineExceeded


@attrs.define(eq=False)
class Backends:
    """The model servers of one run."""

    network: MemoryNetwork
    world: World
    servers: dict[str, list[DemoModel]] = attrs.field(factory=dict)
    """By model."""

    async def start(self, clusters: Sequence[Cluster], nursery: trio.Nursery) -> None:
        """Serve every endpoint of `clusters` until `nursery` is cancelled."""
        for cluster in clusters:
            script = self.world.scenario.models.get(cluster.name, ModelScript())
            if script.is_unreachable:
                continue
            scripted = ScriptedModel(cluster.name, script, self.world)
            servers = self.servers[cluster.name] = []
            for endpoint in cluster.endpoints:
                server = DemoModel(self.network, scripted, respond=scripted.respond)
                await nursery.start(server.run, endpoint.host, endpoint.port)
                servers.append(server)

    def cut_calls(self) -> list[float]:
        """Return when the backends saw their connections close amid a call, in order."""
        calls = [call for each in self.servers.values() for server in each for call in server.calls]
        return sorted(
            call.ended_at
            for call in calls
            if call.end is CallEnd.PEER_GONE and call.ended_at is not None
        )

    def speakers(self) -> frozenset[str]:
        """Return the models that have sent anything."""
        return frozenset(
            name
            for name, servers in self.servers.items()
            if any(call.bytes_sent for server in servers for call in server.calls)
        )

    def open_calls(self) -> int:
        """Return how many calls the backends still work on."""
        calls = [call for each in self.servers.values() for server in each for call in server.calls]
        return sum(call.end is None for call in calls)


def virtual(clusters: Sequence[Cluster]) -> tuple[Cluster, ...]:
    """Return the clusters as a network in memory has them: a port for each endpoint.

    Endpoints are spoken to in clear HTTP/1.1, wherever they are, and are not asked for their
    health; every policy of their calls is the real one.
    """
    port = FIRST_PORT
    found: list[Cluster] = []
    for cluster in clusters:
        endpoints = []
        for endpoint in cluster.endpoints:
            endpoints.append(
                attrs.evolve(endpoint, port=port, tls=False, http_version=HttpVersion.HTTP_1_1)
            )
            port += 1
        found.append(
            attrs.evolve(cluster, endpoints=tuple(endpoints), egress=None, health_check=None)
        )
    return tuple(found)


_WITHOUT_REPLY = (
    Fault.STATUS,
    Fault.REFUSE_BODY,
    Fault.RESET_BEFORE_HEAD,
    Fault.CLOSE_BEFORE_HEAD,
    Fault.RESET_AFTER_HEAD,
    Fault.CLOSE_AFTER_HEAD,
    Fault.SILENCE,
    Fault.BAD_STATUS_LINE,
)
"""Faults of which the client gets nothing that the model says."""
