"""The hosts of a cluster that calls may go to."""

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsr.resources.cluster import Endpoint
from vsr.upstream.policy.host import Host
from vsr.upstream.policy.rotation import Rotation, eligible

NOW = 1000.0
EVERY_SHARE = [(rotating, size) for size in range(1, 11) for rotating in range(size + 1)]


@attrs.define
class FakeBalancer:
    """Keeps what it is told to use and picks from a list, last of all None."""

    used: list[str] = attrs.field(factory=list)
    """Names of the hosts of every use."""
    to_pick: list[Host] = attrs.field(factory=list)
    asked_at: list[float] = attrs.field(factory=list)

    def use(self, hosts: Sequence[Host]) -> None:
        """Keep their names."""
        self.used.append(named(hosts))

    def pick(self, now: float) -> Host | None:
        """Return the next of the list."""
        self.asked_at.append(now)
        return self.to_pick.pop(0) if self.to_pick else None


def hosts_of(size: int, rotating: int | None = None) -> tuple[Host, ...]:
    """Return so many hosts, called by their places, of which the last ones are ejected."""
    hosts = tuple(Host(Endpoint(str(place), "127.0.0.1", 8000 + place)) for place in range(size))
    for host in hosts[size if rotating is None else rotating :]:
        host.is_ejected = True
    return hosts


def named(hosts: Sequence[Host]) -> str:
    """Return the names of the hosts, one letter each."""
    return "".join(host.endpoint.name for host in hosts)


@pytest.mark.parametrize(("rotating", "size"), EVERY_SHARE)
def test_all_hosts_are_eligible_if_less_than_half_rotate(rotating: int, size: int) -> None:
    """Half of them is enough, and a lone host is always used."""
    hosts = hosts_of(size, rotating)

    assert eligible(hosts) == (hosts if rotating < size / 2 else hosts[:rotating])


def test_panic_begins_right_below_half() -> None:
    """However many hosts there are."""
    assert len(eligible(hosts_of(1000, 500))) == 500
    assert len(eligible(hosts_of(1000, 499))) == 1000


def test_no_host_is_eligible_of_none() -> None:
    """The cluster answers that by itself."""
    assert eligible([]) == ()


def test_unhealthy_and_ejected_hosts_are_not_eligible() -> None:
    """Either check puts a host out; the others keep their order."""
    hosts = hosts_of(5)
    hosts[1].is_healthy = False
    hosts[3].is_ejected = True

    assert named(eligible(hosts)) == "024"


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=10))
def test_quarantined_hosts_are_as_good_as_not_there(states: list[tuple[bool, bool, bool]]) -> None:
    """Whatever else is known of them and of the others, in panic too."""
    hosts = hosts_of(len(states))
    for host, (healthy, ejected, quarantined) in zip(hosts, states, strict=True):
        host.is_healthy, host.is_ejected, host.is_quarantined = healthy, ejected, quarantined
    others = [host for host in hosts if not host.is_quarantined]

    rotation = Rotation(hosts, FakeBalancer())

    assert eligible(hosts) == eligible(others)
    assert rotation.is_panicking is Rotation(tuple(others), FakeBalancer()).is_panicking


def test_rotation_picks_none_if_all_hosts_are_quarantined() -> None:
    """That is no reason to panic: it was wanted."""
    hosts, balancer = hosts_of(2), FakeBalancer()
    rotation = Rotation(hosts, balancer)

    for host in hosts:
        host.is_quarantined = True
    rotation.changed()

    assert balancer.used == ["01", ""]
    assert rotation.is_panicking is False
    assert rotation.pick_other([hosts[0]], NOW) is None


@pytest.mark.parametrize(("rotating", "size"), EVERY_SHARE)
def test_rotation_panics_if_less_than_half_rotate(rotating: int, size: int) -> None:
    """It says so, and the balancer has all the hosts from the start."""
    balancer = FakeBalancer()

    rotation = Rotation(hosts_of(size, rotating), balancer)

    assert rotation.is_panicking is (rotating < size / 2)
    assert balancer.used == ["0123456789"[: size if rotating < size / 2 else rotating]]


def test_rotation_of_no_hosts_picks_none() -> None:
    """Nor does it panic: there is nobody to panic for."""
    rotation = Rotation((), FakeBalancer())

    assert rotation.pick(NOW) is None
    assert rotation.pick_other([], NOW) is None
    assert rotation.is_panicking is False


def test_balancer_is_told_when_a_host_leaves_and_returns() -> None:
    """In the order of all hosts."""
    hosts, balancer = hosts_of(3), FakeBalancer()
    rotation = Rotation(hosts, balancer)

    hosts[1].is_ejected = True
    rotation.changed()
    hosts[1].is_ejected = False
    rotation.changed()

    assert balancer.used == ["012", "02", "012"]


def test_balancer_is_told_when_another_host_is_out() -> None:
    """As many as before, but not the same."""
    hosts, balancer = hosts_of(3, 2), FakeBalancer()
    rotation = Rotation(hosts, balancer)

    hosts[0].is_ejected, hosts[2].is_ejected = True, False
    rotation.changed()

    assert balancer.used == ["01", "12"]


def test_balancer_is_not_told_of_what_changes_nothing() -> None:
    """A schedule that is rebuilt begins again: it would favour the first hosts."""
    hosts, balancer = hosts_of(3, 2), FakeBalancer()
    rotation = Rotation(hosts, balancer)

    rotation.changed()
    hosts[2].is_healthy = False
    rotation.changed()

    assert balancer.used == ["01"]


def test_balancer_is_not_told_of_changes_among_hosts_in_panic() -> None:
    """All are used anyway, until enough rotate again."""
    hosts, balancer = hosts_of(5, 2), FakeBalancer()
    rotation = Rotation(hosts, balancer)

    hosts[0].is_ejected = True
    rotation.changed()
    in_panic = list(balancer.used)
    for host in hosts[:3]:
        host.is_ejected = False
    rotation.changed()

    assert in_panic == ["01234"]
    assert balancer.used == ["01234", "012"]
    assert rotation.is_panicking is False


def test_panic_begins_and_ends_without_another_set_of_hosts() -> None:
    """One host stays in use whatever the checks say, but that is panic too."""
    hosts, balancer = hosts_of(1), FakeBalancer()
    rotation = Rotation(hosts, balancer)

    hosts[0].is_healthy = False
    rotation.changed()
    unhealthy = rotation.is_panicking
    hosts[0].is_healthy = True
    rotation.changed()

    assert unhealthy is True
    assert rotation.is_panicking is False
    assert balancer.used == ["0"]


def test_first_attempt_goes_where_the_balancer_says() -> None:
    """It is asked once, with the time."""
    hosts = hosts_of(2)
    balancer = FakeBalancer(to_pick=[hosts[1], hosts[0]])

    picked = Rotation(hosts, balancer).pick(NOW)

    assert picked is hosts[1]
    assert balancer.asked_at == [NOW]


@pytest.mark.parametrize(
    ("picks", "taken"),
    [
        ([2, 0, 0, 0, 0], 1),
        ([0, 2, 0, 0, 0], 2),
        ([1, 0, 2, 0, 0], 3),
        ([0, 0, 1, 2, 0], 4),
        ([0, 1, 0, 1, 2], 4),
    ],
)
def test_retry_picks_again_until_a_host_is_untried(picks: list[int], taken: int) -> None:
    """Three times at most; the last pick is used even if it was tried."""
    hosts = hosts_of(3)
    balancer = FakeBalancer(to_pick=[hosts[place] for place in picks])

    picked = Rotation(hosts, balancer).pick_other({hosts[0], hosts[1]}, NOW)

    assert picked is hosts[picks[taken - 1]]
    assert balancer.asked_at == [NOW] * taken


def test_retry_of_a_lone_host_goes_there_again() -> None:
    """There is no other."""
    hosts = hosts_of(1)
    balancer = FakeBalancer(to_pick=[hosts[0]] * 9)

    assert Rotation(hosts, balancer).pick_other(hosts, NOW) is hosts[0]
