"""A configuration and a Router for the management API, as its ports have them."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import attrs
import msgspec
import trio

from vsr.admin.app import App, Surroundings
from vsr.admin.audit import Audit
from vsr.admin.ports import (
    Checked,
    DocumentChanged,
    DocumentFailed,
    GenerationView,
    ServingView,
)
from vsr.admin.quarantine import Quarantine, Quarantined
from vsr.admin.views import BackendsView, BreakerView, ClusterView, EndpointView
from vsr.config.attempt import ActiveConfiguration, Attempt, AttemptStatus, LifecycleStatus, Stage
from vsr.config.history import Document, Record
from vsr.config.inspection import Inspect, Inspected, Mode
from vsr.config.origin import Origin
from vsr.headers import HeaderLine
from vsr.resources.cluster import Cluster, Endpoint
from vsr.resources.management import Management
from vsr.resources.snapshot import Snapshot
from vsr.routing.request_views import (
    RequestDetail,
    RequestList,
    RequestView,
    RoutingView,
    TryView,
    UsageView,
    newest,
)

TEXT = b"version: v0.3\n"
NOW = 1_700_000_000.0


@attrs.define(eq=False)
class FakeConfiguration:
    """Implements `admin.ports.Configuration` over texts that it does not read."""

    text: bytes = TEXT
    status: LifecycleStatus = attrs.field(
        factory=lambda: LifecycleStatus(
            ActiveConfiguration(3, hashlib.sha256(TEXT).hexdigest(), Origin("startup"), NOW)
        )
    )
    management: Management = attrs.field(factory=Management)
    history: dict[str, tuple[Record, Document | None]] = attrs.field(factory=dict)
    checked: Checked = attrs.field(factory=Checked)
    inspected: Inspected = attrs.field(factory=lambda: Inspected(b"", json=msgspec.Raw(b"{}")))
    """What every text comes to, apart from the candidate."""
    deploy_s: float = 0.0
    ends: AttemptStatus | None = AttemptStatus.ACTIVE
    """How a deployment ends; None: it does not in time."""
    faults: dict[str, Exception] = attrs.field(factory=dict)
    """By method."""
    questions: list[Inspect] = attrs.field(factory=list)
    written: list[tuple[Document, Origin]] = attrs.field(factory=list)
    asked: list[Document] = attrs.field(factory=list)
    """Documents that were checked."""
    kept: list[bytes] = attrs.field(factory=list)

    async def models(self) -> bytes:
        """Return none."""
        await trio.lowlevel.checkpoint()
        return b'{"object":"list","data":[]}\n'

    def standing(self, text: bytes) -> str:
        """Return whether it serves."""
        active = self.status.active
        is_active = active is not None and hashlib.sha256(text).hexdigest() == active.hash
        return "active" if is_active else "unknown"

    async def read(self) -> bytes:
        """Return the text."""
        await self._step("read")
        return self.text

    async def inspect(self, question: Inspect) -> Inspected:
        """Return what was prepared; a merge appends."""
        await self._step("inspect")
        self.questions.append(question)
        base = question.base or b"" if question.mode is Mode.MERGE else b""
        return msgspec.structs.replace(self.inspected, candidate=base + question.text)

    async def examine(self, question: Inspect) -> tuple[Inspected, Checked]:
        """Return both that were prepared."""
        inspected = await self.inspect(question)
        if inspected.reasons:
            return inspected, Checked()
        return inspected, await self.check(Document(inspected.candidate))

    async def check(self, document: Document) -> Checked:
        """Return what was prepared."""
        await self._step("check")
        self.asked.append(document)
        return self.checked

    async def records(self) -> list[Record]:
        """Return the history."""
        await self._step("records")
        return [record for record, _ in self.history.values()]

    async def recorded(self, record_id: str) -> Document | None:
        """Return a document of it."""
        await self._step("recorded")
        _, document = self.history.get(record_id, (None, None))
        return document

    async def keep(self, text: bytes) -> str:
        """Note it."""
        await self._step("keep")
        self.kept.append(text)
        return "20260101-000000"

    async def deploy(
        self, document: Document, origin: Origin, replaced: bytes, checked: Checked
    ) -> Attempt | None:
        """Take the text, and end as was prepared."""
        await self._step("deploy")
        assert replaced == self.text
        assert checked is self.checked
        self.text = document.text
        self.written.append((document, origin))
        await trio.sleep(self.deploy_s)
        if self.ends is None:
            return None
        version = 4 if self.ends is AttemptStatus.ACTIVE else 0
        sha256 = hashlib.sha256(document.text).hexdigest()
        return Attempt(
            7, sha256, origin, NOW, self.ends, Stage.ACTIVATE, version, finished_at=NOW + 1
        )

    async def _step(self, what: str) -> None:
        await trio.lowlevel.checkpoint()
        if what in self.faults:
            raise self.faults[what]


UNREADABLE = DocumentFailed("Permission denied")
CHANGED = DocumentChanged()


SMALL = Cluster("small", (Endpoint("one", "h", 1), Endpoint("a/b c", "h", 2)), "model")


@attrs.define(eq=False)
class FakeServing:
    """Implements `admin.ports.Serving`."""

    details: list[RequestDetail] = attrs.field(factory=list)
    ready: bool = True
    drains: int = 0

    async def view(self) -> ServingView:
        """Return one generation and one that ends."""
        await trio.lowlevel.checkpoint()
        generations = (
            GenerationView(3, active=True, leases=2),
            GenerationView(2, active=False, leases=1),
        )
        return ServingView(self.ready, self.drains > 0, 1, 12.5, 4, {"public": 8899}, generations)

    missing: tuple[int, ...] = ()
    """Workers that answer nothing."""
    quarantined: list[Quarantined] = attrs.field(factory=list)
    """What was let known."""
    quarantine: Quarantine = attrs.field(init=False)

    @quarantine.default
    def _own_quarantine(self) -> Quarantine:
        snapshot = Snapshot("x", clusters=(SMALL,))
        return Quarantine(lambda: snapshot, self._spread, lambda: NOW)

    async def _spread(self, quarantined: Quarantined) -> tuple[int, ...]:
        await trio.lowlevel.checkpoint()
        self.quarantined.append(quarantined)
        return self.missing

    async def backends(self) -> BackendsView:
        """Return one cluster."""
        await trio.lowlevel.checkpoint()
        endpoint = EndpointView(
            "one",
            available=False,
            healthy=True,
            ejected=True,
            quarantined=False,
            ejection_reason="consecutive_5xx",
            ejected_for_s=12.0,
            in_flight=3,
            weight=1,
            latency_ms=1.5,
            attempts={"5xx": 5},
        )
        limits = (1024, 1024, 1024)
        breaker = BreakerView(False, 3, 0, *limits)  # noqa: FBT003
        cluster = ClusterView("small", "round_robin", True, breaker, (endpoint,))  # noqa: FBT003
        return BackendsView(3, (cluster,), self.missing)

    async def metrics(self) -> bytes:
        """Return one."""
        await trio.lowlevel.checkpoint()
        return b"up 1.0\n"

    async def requests(self, limit: int) -> RequestList:
        """Return those that it holds."""
        await trio.lowlevel.checkpoint()
        kept = newest([each.request for each in self.details], limit)
        return RequestList(ended=kept, kept=200)

    async def request(self, request_id: str, start_time: str) -> RequestDetail | None:
        """Return one of them."""
        await trio.lowlevel.checkpoint()
        at = {(each.request.id, each.request.start_time): each for each in self.details}
        if start_time:
            return at.get((request_id, start_time))
        return next((each for (name, _), each in at.items() if name == request_id), None)

    def drain(self) -> None:
        """Count."""
        self.drains += 1


def detail(request_id: str, start_time: str = "2026-01-01T00:00:00.000000000Z") -> RequestDetail:
    """Return a plain request that has succeeded."""
    request = RequestView(
        request_id,
        start_time,
        12.5,
        "http",
        "HTTP/1.1",
        "POST",
        "/v1/chat/completions",
        "ended",
        "auto",
        "default",
        "maths",
        "small",
        7,
        200,
        "succeeded",
        None,
        "",
        1,
    )
    attempt = TryView("small", "backend-1", "succeeded", 1.0, 9.0, 12.0, 200, "", "")
    return RequestDetail(request, RoutingView("auto"), (attempt,), UsageView(3, 4), None)


@attrs.define
class Got:
    """An answer."""

    status: int
    lines: dict[bytes, bytes]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401  # of any shape
        """Return its content."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Return the code of a refusal."""
        code: str = self.json()["error"]["code"]
        return code


@attrs.define(eq=False)
class Desk:
    """The API with fakes behind it."""

    configuration: FakeConfiguration = attrs.field(factory=FakeConfiguration)
    serving: FakeServing = attrs.field(factory=FakeServing)
    environ: dict[str, str] = attrs.field(factory=dict)
    audit: Audit = attrs.field(factory=lambda: Audit(lambda: NOW))
    app: App = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        around = Surroundings(self.environ, lambda: NOW, lambda: "made-id", "1.2.3")
        self.app = App(self.configuration, self.serving, self.audit, around)

    async def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        lines: Sequence[HeaderLine] = (),
        if_match: str = "",
        token: str = "",
    ) -> Got:
        """Send a request; a body that is no bytes goes as JSON."""
        fields: list[HeaderLine] = [(b"host", b"127.0.0.1:8080"), *lines]
        fields += [(b"if-match", if_match.encode())] if if_match else []
        fields += [(b"authorization", b"Bearer " + token.encode())] if token else []
        content = body if isinstance(body, bytes) else json.dumps(body).encode()

        async def read_body(limit_bytes: int) -> bytes:
            await trio.lowlevel.checkpoint()
            return content

        status, answered, sent = await self.app.answer(
            method.encode(), target.encode(), fields, read_body
        )
        return Got(status, dict(answered), sent)


def record(
    version: int, record_id: str, *, source: str = "file", has_document: bool = True
) -> Record:
    """Return what is known of a recorded configuration."""
    return Record(record_id, f"hash-{version}", Origin(source), "", version, has_document)
