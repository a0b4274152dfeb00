"""A Router over backends of one model that differ in all: HTTP version, TLS, form and key."""

from pathlib import Path

import attrs
import trio
import trio.testing

from tests.demo.raw_client import Got, chat_body
from tests.engine.unlike import fine
from tests.engine.wired import CHAT_PIECES, COMPLETION
from tests.fakes.h2_backend import STREAM_HEAD, H2Backend, Head, Play
from tests.fakes.router import RunningRouter, clusters_of, start_router
from tests.fakes.spans import SpanRecorder
from tests.upstream.raw_backend import RawBackend
from tests.upstream.tls_scene import (
    OURS,
    THEIRS,
    TlsBackend,
    server_context,
    write_authority,
    write_identity,
)
from vsr.config.source import load_snapshot
from vsr.network.memory import MemoryNetwork
from vsr.resources.snapshot import Snapshot
from vsr.upstream.h2_pool import AnyPool

NAMES = ("plain", "shared", "claude")
NOTHING = {"leases": 0, "connections": 0, "hosts": 0, "slots": 0, "retries": 0}
TARGETS = {
    "plain": b"/v1/chat/completions",
    "shared": b"/shared-canary/chat/completions",
    "claude": b"/v1/messages",
}
CHAT: Play = (Head(), COMPLETION)
CHAT_STREAM: Play = (STREAM_HEAD, *CHAT_PIECES)

DOCUMENT = """\
listeners: [{{name: http, address: 127.0.0.1, port: 8899}}]
providers:
  models:
    - name: mix
      reliability: {{{reliability}}}
      backend_refs:
        - {{name: plain, endpoint: "plain.test:{plain}"}}
        - name: shared
          provider: openai-compatible
          base_url: https://shared.test:{shared}/shared-canary
          http_version: "2"
          api_key: "file:shared.txt"
          extra_headers: {{x-own: shared-canary-header}}
          tls: {{ca_file: ours.pem, {identity}}}
        - name: claude
          provider: anthropic-compatible
          base_url: https://claude.test:{claude}
          http_version: auto
          api_key: claude-canary-key
          tls: {{ca_file: {claude_ca}}}
    - name: spare
      backend_refs:
        - base_url: https://shared.test:{shared}
          http_version: auto
          api_key: spare-key
          tls: {{ca_file: ours.pem, {identity}}}
routing:
  fallback: {{enabled: true, last_resort: {{content: nobody}}}}
  decisions: [{{name: all, modelRefs: [{{model: mix}}, {{model: spare}}]}}]
global:
  router: {{egress: {egress}}}
  services: {{observability: {{tracing: {{exporter: {{type: stdout}}}}}}}}
"""


@attrs.define(eq=False)
class MixedScene:
    """The Router, its three backends and its spans."""

    folder: Path
    router: RunningRouter
    recorder: SpanRecorder
    plain: RawBackend
    shared: H2Backend
    claude: TlsBackend
    reliability: str
    egress: str

    async def ask(self, model: str = "mix", *, stream: bool = False) -> Got:
        """Ask the model, or with `auto` the decision, and let the request end."""
        got = await self.router.ask(chat_body(model=model, stream=stream))
        await trio.testing.wait_all_tasks_blocked()
        return got

    def seen(self, name: str) -> list[tuple[bytes, dict[bytes, bytes], bytes]]:
        """Return target, fields and body of every call that a backend got."""
        if name == "shared":
            calls = self.shared.calls
            return [(each.field(b":path"), dict(each.fields), bytes(each.body)) for each in calls]
        backend = self.plain if name == "plain" else self.claude
        return [
            (head.target, dict(head.lines), body)
            for head, body in backend.seen
            if head.target != b"/health"
        ]

    def check_forms(self) -> None:
        """Every backend saw its own form in all its calls, and no word of another's."""
        for name in NAMES:
            for target, fields, body in self.seen(name):
                assert target == TARGETS[name]
                shown = repr((target, fields, body))
                for other in NAMES:
                    assert other == name or f"{other}-canary" not in shown

    def parents(self) -> set[bytes]:
        """Return the `traceparent` of every call that a backend got."""
        return {fields[b"traceparent"] for name in NAMES for _, fields, _ in self.seen(name)}

    def pools(self) -> dict[str, AnyPool]:
        """Return the pools of the newest configuration, by endpoint."""
        cluster = next(iter(clusters_of(self.router.generation)))
        return {host.endpoint.name: host.pool for host in cluster.state.hosts}

    def take_turns(self, name: str) -> None:
        """Let the balancer begin with an endpoint."""
        cluster = next(iter(clusters_of(self.router.generation)))
        cluster.state.rotation._balancer._next = NAMES.index(name)  # type: ignore[attr-defined]

    def load(self, *, claude_ca: str = "theirs.pem", reliability: str | None = None) -> Snapshot:
        """Return the document as the files are now."""
        return _load(
            self.folder,
            {"plain": self.plain.port, "shared": self.shared.port, "claude": self.claude.port},
            self.reliability if reliability is None else reliability,
            self.egress,
            claude_ca,
        )

    async def held(self) -> dict[str, int]:
        """Return what calls hold, once nothing moves."""
        leases, connections = await self.router.held()
        states = clusters_of(self.router.generation).states.values()
        breakers = [state.gate.breaker for state in states]
        return {
            "leases": leases,
            "connections": connections,
            "hosts": sum(host.active for state in states for host in state.hosts),
            "slots": sum(breaker.active + breaker.waiting for breaker in breakers),
            "retries": sum(state.slots.taken for state in states),
        }


def _load(
    folder: Path, ports: dict[str, int], reliability: str, egress: str, claude_ca: str
) -> Snapshot:
    text = DOCUMENT.format(
        **ports,
        reliability=reliability,
        egress=egress,
        claude_ca=claude_ca,
        identity="cert_file: router.pem, key_file: router.key",
    )
    (folder / "config.yaml").write_text(text)
    return load_snapshot(folder / "config.yaml", {})


async def start_mixed(
    nursery: trio.Nursery,
    folder: Path,
    *plays: Play,
    reliability: str = "retry_count: 2, retry_on: '5xx,connect-failure,refused-stream'",
    egress: str = "{}",
    network: MemoryNetwork | None = None,
    stranger: bool = False,
    claude_ca: str = "theirs.pem",
) -> MixedScene:
    """Start one; `plain` has its turn first, then `shared`, then `claude`.

    Args:
        nursery: everything lives in it.
        folder: of the document and its files.
        plays: of `shared`, call by call.
        reliability: the model's, without its braces.
        egress: the lists, as YAML.
        network: on which it all is.
        stranger: whether `shared` does not trust our certificate.
        claude_ca: file of the authorities that are trusted for `claude`.
    """
    network = network or MemoryNetwork()
    for authority, stem in ((OURS, "ours"), (THEIRS, "theirs")):
        write_authority(authority, folder, stem)
    write_identity(OURS.issue_cert("router.test"), folder, "router")
    (folder / "shared.txt").write_text("shared-canary-key\n")
    plain = await RawBackend(network, fine("plain")).start(nursery)
    context = server_context(OURS.issue_cert("shared.test"), asks=THEIRS if stranger else OURS)
    context.set_alpn_protocols(["h2"])
    shared = await H2Backend(network, plays or (CHAT,), tls=context).start(nursery)
    of_claude = server_context(THEIRS.issue_cert("claude.test"))
    claude = TlsBackend(network, fine("claude"), context=of_claude)
    await claude.start(nursery)
    ports = {"plain": plain.port, "shared": shared.port, "claude": claude.port}
    snapshot = _load(folder, ports, reliability, egress, claude_ca)
    recorder = SpanRecorder()
    router = await start_router(nursery, network, snapshot, open_spans=recorder.open)
    scene = MixedScene(folder, router, recorder, plain, shared, claude, reliability, egress)
    scene.take_turns("plain")
    return scene
