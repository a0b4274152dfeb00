"""Resources `endpoint` and `cluster`: the backends of one provider model."""

from enum import StrEnum

import attrs
import msgspec

from vsr.resources.backend_tls import SYSTEM_TLS, BackendTls
from vsr.resources.egress import Egress
from vsr.resources.reasoning import ReasoningFamily, ReasoningTransport
from vsr.resources.reliability import (
    BreakerLimits,
    CallPolicy,
    HealthCheck,
    LbPolicy,
    OutlierDetection,
    RetryBudget,
)


class ApiFormat(StrEnum):
    """Wire protocol of a cluster."""

    OPENAI = "openai"
    """Chat completions."""
    RESPONSES = "responses"
    ANTHROPIC = "anthropic"


class HttpVersion(StrEnum):
    """How a cluster's backends are spoken to."""

    HTTP_1_1 = "1.1"
    HTTP_2 = "2"
    """In clear text by prior knowledge; over TLS both sides must agree on it."""
    AUTO = "auto"
    """Over TLS alone: HTTP/2 where the backend chooses it, else HTTP/1.1."""


class Pricing(msgspec.Struct, frozen=True):
    """Prices per million tokens."""

    currency: str = "USD"
    prompt_per_1m: float = 0.0
    completion_per_1m: float = 0.0
    cached_input_per_1m: float = 0.0
    cache_write_per_1m: float | None = None
    """None means that of the prompt."""


@attrs.frozen
class Endpoint:
    """One address that serves a cluster's model."""

    name: str
    host: str
    """DNS name or IP literal, IPv6 without brackets."""
    port: int
    tls: bool = False
    weight: int = 1
    tls_settings: BackendTls = SYSTEM_TLS
    """Of its connections, if `tls`."""
    server_name: str = attrs.field()
    """DNS name or IP address that its certificate must have."""
    profile: int = 0
    """How it is called, where its cluster's endpoints differ: an index of `Cluster.profiles`."""
    http_version: HttpVersion = HttpVersion.HTTP_1_1
    health_path: str | None = None
    """What it is asked for its health; None: what the cluster says, empty: it is not asked."""
    authority: str = attrs.field(init=False)
    """The `Host` value: brackets for IPv6, the port unless it is the scheme's own."""
    authority_bytes: bytes = attrs.field(init=False, repr=False)
    address: str = attrs.field(init=False)
    """`host:port` as configured."""

    host_port: tuple[str, int] = attrs.field(init=False, repr=False)

    @server_name.default
    def _server_name(self) -> str:
        return self.host

    @authority.default
    def _authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @authority_bytes.default
    def _authority_bytes(self) -> bytes:
        return self.authority.encode()

    @host_port.default
    def _host_port(self) -> tuple[str, int]:
        return self.host, self.port

    @address.default
    def _address(self) -> str:
        return f"{self.host}:{self.port}"


class UserKeys(msgspec.Struct, frozen=True):
    """How a call comes by a user's own key for the provider, which goes before the cluster's."""

    asked: tuple[bytes, ...]
    """Request headers that may hold it, in lower case; the first one that is there wins."""
    header: bytes
    """Header that the backend reads it from, in lower case."""
    prefix: bytes
    """What stands before it there, with its blank; may be empty."""
    is_required: bool = False
    """Whether a call that has no key otherwise is refused."""


@attrs.frozen
class Profile:
    """How some endpoints of a cluster are called; the members are the cluster's own, see there."""

    upstream_model: str
    chat_path: str
    base_path: str
    route_headers: tuple[tuple[bytes, bytes], ...] = attrs.field(repr=False)
    credential: tuple[bytes, bytes] | None = attrs.field(repr=False)
    api_format: ApiFormat
    provider: str
    reasoning_transport: ReasoningTransport
    user_keys: UserKeys | None
    known_host: str = ""
    """The host, if it is a provider's public one: the dialect may go by it."""


@attrs.frozen
class Cluster:
    """All backends of one provider model: one alias, one policy.

    Where they are not all called alike (`profiles`), what is said here of how they are called is
    the first endpoint's, and `profile.views` gives a cluster for each way.
    """

    name: str
    """The alias: what decisions name and the route key equals."""
    endpoints: tuple[Endpoint, ...]
    upstream_model: str
    """The model name that the backend is asked for."""
    chat_path: str = "/v1/chat/completions"
    """Path (and query) at the backend of a call in `api_format`."""
    base_path: str = ""
    """Path prefix of the base URL without trailing slash; replaces `/v1` on the default route."""
    route_headers: tuple[tuple[bytes, bytes], ...] = attrs.field(default=(), repr=False)
    """`extra_headers`, sorted by name, lower-cased; each replaces what the request carries."""
    credential: tuple[bytes, bytes] | None = attrs.field(default=None, repr=False)
    """Header line that authenticates us to the backend."""
    connect_timeout_s: float = 10.0
    """TCP and TLS together. Source: the reference's cluster connect timeout."""
    egress: Egress | None = None
    """Which addresses its endpoints may be at; None: any."""
    calls: CallPolicy = attrs.field(factory=CallPolicy)
    """Timeouts and retries of its calls, unless a layer above changes them."""
    replay_bytes: int = 4_194_304
    """Requests with a longer body are not repeated. Our own default."""
    lb_policy: LbPolicy = LbPolicy.ROUND_ROBIN
    breaker: BreakerLimits = attrs.field(factory=BreakerLimits)
    retry_budget: RetryBudget | None = None
    """None: `breaker.max_retries` bounds the retries that run at once."""
    outliers: OutlierDetection | None = None
    """None: no endpoint is ejected."""
    health_check: HealthCheck | None = None
    """None: endpoints are not asked for their health."""
    api_format: ApiFormat = ApiFormat.OPENAI
    provider: str = "vllm"
    """Kind of its backends."""
    external_names: tuple[str, ...] = ()
    """Further names of the model at providers; name lookups accept them as the alias."""
    loras: tuple[str, ...] = ()
    """Adapters that the model card declares; a call may ask for one in place of the model."""
    reasoning: ReasoningFamily | None = None
    reasoning_family: str | None = attrs.field(default=None, eq=False)
    """Name of `reasoning`, if it is a built-in family."""
    reasoning_transport: ReasoningTransport = ReasoningTransport.CHAT_TEMPLATE_KWARGS
    pricing: Pricing | None = None
    user_keys: UserKeys | None = None
    """None: users have none for it, and a call needs no more than `credential`."""
    context_window_tokens: int | None = None
    max_output_tokens: int | None = None
    # What does not change how it is called is no part of what it is: its state goes on.
    param_size: str | None = attrs.field(default=None, eq=False)
    """As its card writes it, like `7b`."""
    quality_score: float | None = attrs.field(default=None, eq=False)
    """What its operator thinks of it, from 0 to 1."""
    is_described: bool = attrs.field(default=True, eq=False)
    """Whether it has a card, a price or a score; of another one nothing is known but how to call
    it."""
    profiles: tuple[Profile, ...] = ()
    """The ways in which its endpoints are called; empty if all are called alike."""
