"""What each endpoint of a mixed cluster is asked, and where its connections come from."""

import random
import ssl

import attrs
import pytest
import trio.testing

from vsr.deadline import Deadline
from vsr.errors import InvalidRequest, NoHealthyEndpoint
from vsr.headers import Headers
from vsr.network.memory import MemoryNetwork
from vsr.resources.backend_tls import BackendTls
from vsr.resources.cluster import ApiFormat, Cluster, Endpoint, Profile
from vsr.resources.profile import views
from vsr.resources.reasoning import ReasoningTransport
from vsr.resources.snapshot import Snapshot
from vsr.routing.plan import Call
from vsr.routing.ports import Journal
from vsr.slices import at_once
from vsr.upstream.cluster import RuntimeCluster
from vsr.upstream.clusters import Clusters, Surroundings, build_clusters
from vsr.upstream.dialer import Alpn
from vsr.upstream.mix import Fitting
from vsr.upstream.policy.host import Host

PLAIN = Profile(
    upstream_model="one",
    chat_path="/v1/chat/completions",
    base_path="",
    route_headers=(),
    credential=None,
    api_format=ApiFormat.OPENAI,
    provider="vllm",
    reasoning_transport=ReasoningTransport.CHAT_TEMPLATE_KWARGS,
    user_keys=None,
)
KEYED = attrs.evolve(
    PLAIN,
    upstream_model="two",
    base_path="/two",
    route_headers=((b"x-two", b"2"),),
    credential=(b"authorization", b"Bearer of-two"),
)
ENDPOINTS = (Endpoint("a", "a", 1), Endpoint("b", "b", 2, profile=1), Endpoint("c", "c", 3))
MIXED = Cluster("m", ENDPOINTS, "one", profiles=(PLAIN, KEYED))
CALL = Call(
    b"POST",
    b"/v1/embeddings",
    Headers([(b"authorization", b"of-the-client"), (b"x-two", b"of-the-client")]),
    b"{}",
    b"",
)


@attrs.define(eq=False)
class FakeRenditions:
    """Hands out scripted calls; what is no call is raised."""

    calls: dict[int, Call | Exception]
    profile: int = 0
    asked: list[int] = attrs.field(factory=list)
    answered: list[int] = attrs.field(factory=list)

    def call_for(self, profile: int) -> Call:
        """Return the scripted one."""
        self.asked.append(profile)
        found = self.calls[profile]
        if isinstance(found, Exception):
            raise found
        return found

    def answered_by(self, profile: int) -> None:
        """Keep it."""
        self.answered.append(profile)


def clusters_of(*clusters: Cluster, previous: Clusters | None = None) -> Clusters:
    """Return the clusters of a snapshot with these."""

    def context(_: BackendTls, __: Alpn) -> ssl.SSLContext:
        return ssl.create_default_context()

    around = Surroundings(MemoryNetwork(), random.Random(7), context)  # noqa: S311  # a seed
    return at_once(build_clusters(Snapshot("hash", clusters=clusters), around, previous))


def runtime(cluster: Cluster) -> RuntimeCluster:
    """Return one of them."""
    return clusters_of(cluster).cluster_for(b"m")


def fitting(renditions: FakeRenditions | None = None) -> tuple[Fitting, tuple[Host, ...]]:
    """Return a call's fitting to `MIXED`, and the hosts of that."""
    found = runtime(MIXED)
    assert found.mix is not None
    call = routed(b"of-the-lead", renditions)
    return Fitting(found.mix, CALL if renditions is None else call), found.state.hosts


def routed(body: bytes, renditions: FakeRenditions | None = None) -> Call:
    """Return a call that the core has made."""
    headers = Headers([(b"x-selected-model", b"m")])
    call = Call(b"POST", b"/", headers, body, b"m", own_headers=frozenset({b"x-selected-model"}))
    call.renditions = renditions
    return call


def fit(each: Fitting, hosts: tuple[Host, ...], at: int, *tried: int, seed: int = 7) -> str:
    """Return the name of the host that is asked when the balancer has chosen the one at `at`."""
    rng = random.Random(seed)  # noqa: S311  # a seed
    return each.fit(hosts[at], hosts, [hosts[it] for it in tried], rng).endpoint.name


def test_cluster_of_one_kind_is_sent_to_without_any_of_this() -> None:
    """By the wire, the pool and the short way that all its endpoints share."""
    alike = runtime(Cluster("m", (Endpoint("a", "a", 1), Endpoint("b", "b", 2)), "one"))

    assert alike.mix is None
    assert alike._shortcut is alike.state.gate.breaker  # chosen at activation
    assert len({id(host.pool) for host in alike.state.hosts}) == 1


def test_view_holds_the_endpoints_of_its_profile_and_says_what_that_says() -> None:
    """Every member of a profile is one of the cluster, where the view has it."""
    first, second = views(MIXED)

    assert [[end.name for end in view.endpoints] for view in (first, second)] == [["a", "c"], ["b"]]
    for view, profile in ((first, PLAIN), (second, KEYED)):
        assert view.profiles == ()
        for field in attrs.fields(Profile):
            if field.name != "known_host":
                assert getattr(view, field.name) == getattr(profile, field.name)
    assert views(second) == (second,)


def test_passed_on_call_is_made_by_the_rules_of_the_endpoints_own_kind() -> None:
    """Base path, headers and credentials; the client's headers are left as they came."""
    each, hosts = fitting()

    one, two = each.request_for(hosts[0]), each.request_for(hosts[1])

    assert (one.target, one.lines) == (b"/v1/embeddings", CALL.headers.lines)
    assert (two.target, two.lines) == (b"/two/embeddings", [(b"x-two", b"2")])
    assert len(CALL.headers.lines) == 2


def test_form_is_made_once_and_only_for_who_is_asked() -> None:
    """That of the call itself is there already."""
    renditions = FakeRenditions({1: routed(b"of-two")})
    each, hosts = fitting(renditions)

    assert each.request_for(hosts[0]).body == each.request_for(hosts[2]).body == b"of-the-lead"
    assert renditions.asked == []
    assert each.request_for(hosts[1]).body == each.request_for(hosts[1]).body == b"of-two"
    assert renditions.asked == [1]
    each.answered_by(hosts[1])
    assert renditions.answered == [1]


def test_host_that_cannot_be_asked_gives_way_to_one_that_can() -> None:
    """First to those in rotation and not tried, then to those in rotation, then to any."""
    each, hosts = fitting(FakeRenditions({1: InvalidRequest("no")}))
    names = {fit(each, hosts, 1, seed=seed) for seed in range(20)}

    assert names == {"a", "c"}
    assert fit(each, hosts, 0) == "a"
    assert {fit(each, hosts, 1, 0, seed=seed) for seed in range(20)} == {"c"}
    hosts[2].is_ejected = True
    assert {fit(each, hosts, 1, 0, seed=seed) for seed in range(20)} == {"a"}
    hosts[0].is_healthy = False
    assert {fit(each, hosts, 1, 0, 1, 2, seed=seed) for seed in range(20)} == {"a", "c"}
    with pytest.raises(ValueError, match="can't be asked"):
        each.request_for(hosts[1])


def test_quarantined_host_is_asked_by_nobody_though_no_other_can_be() -> None:
    """Rather is the call refused."""
    each, hosts = fitting(FakeRenditions({1: InvalidRequest("no")}))
    hosts[0].is_quarantined = hosts[2].is_quarantined = True

    with pytest.raises(NoHealthyEndpoint):
        fit(each, hosts, 1)
    hosts[2].is_quarantined = False

    assert fit(each, hosts, 1) == "c"


async def test_slot_is_given_back_when_a_form_cannot_even_be_tried(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whatever goes wrong there."""
    broken = FakeRenditions({1: RuntimeError("bug")})
    found = runtime(attrs.evolve(MIXED, endpoints=ENDPOINTS[1:2]))
    call = routed(b"", broken)

    with pytest.raises(RuntimeError, match="bug"):
        await found.send(call, now=0, deadline=Deadline(), idle_s=None, journal=Journal())

    assert found.state.gate.breaker.active == 0
    assert {host.pool.in_use for host in found.state.hosts} == {0}


def test_connections_are_kept_by_the_name_of_the_endpoints_own_certificate() -> None:
    """One in clear text shares none with one behind TLS, though host and port are the same."""
    ends = (
        Endpoint("a", "one.test", 8443, tls=True),
        Endpoint("b", "two.test", 8443, tls=True),
        Endpoint("c", "one.test", 8443),
    )
    other = Cluster("alone", (Endpoint("a", "two.test", 8443, tls=True), ENDPOINTS[0]), "one")
    clusters = clusters_of(Cluster("m", ends, "one"), other)
    mixed = clusters.cluster_for(b"m")

    pools = [host.pool for host in mixed.state.hosts]

    assert len(set(map(id, pools))) == 3
    assert mixed.mix is None  # they are called alike
    assert [domain.server_name for domain in clusters.pools] == ["one.test", "two.test", ""]
    assert clusters.cluster_for(b"alone").state.hosts[0].pool is pools[1]


def test_pools_and_state_outlive_a_configuration_that_leaves_a_mixed_cluster_unchanged() -> None:
    """Like those of any cluster; a changed profile begins anew."""
    first = clusters_of(MIXED)
    second = clusters_of(MIXED, previous=first)
    changed = clusters_of(
        attrs.evolve(MIXED, profiles=(PLAIN, attrs.evolve(KEYED, base_path="/x"))),
        previous=second,
    )

    states = [each.cluster_for(b"m").state for each in (first, second, changed)]

    assert states[0] is states[1]
    assert states[1] is not states[2]
    assert first.pools == second.pools == changed.pools


def test_secrets_of_profiles_are_not_shown() -> None:
    """Not in what a traceback or a log may print."""
    assert "of-two" not in repr(MIXED)
    assert "x-two" not in repr(KEYED)
