"""Outlier ejection under any sequence of answers, checks and sweeps."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.upstream.policy.outlier_cluster import NEVER, ejected, hosts
from vsr.resources.reliability import OutlierDetection
from vsr.upstream.policy.host import Host
from vsr.upstream.policy.outlier import EjectionReason, OutlierDetector


class Cluster(RuleBasedStateMachine):
    """A cluster under any answers, checks and sweeps.

    Sweeps come when they are due, and sometimes earlier, but never late.
    """

    @initialize(
        count=st.integers(1, 10),
        settings=st.builds(
            OutlierDetection,
            consecutive_5xx=st.sampled_from([1, 3, NEVER]),
            base_ejection_s=st.floats(5, 60),
            max_ejection_s=st.floats(5, 150),
            max_ejection_percent=st.integers(0, 100),
            interval_s=st.floats(5, 20),
        ),
        start=st.floats(0, 10**6),
    )
    def begin(self, count: int, settings: OutlierDetection, start: float) -> None:
        """Begin with everything in rotation."""
        self.now = start
        self.settings = settings
        self.longest_s = max(settings.base_ejection_s, settings.max_ejection_s)
        self.hosts = hosts(count)
        self.detector = OutlierDetector(settings, self.hosts, start)
        self.ejected_at: dict[Host, float] = {}
        self.rotating = self.hosts

    @rule(data=st.data(), statuses=st.lists(st.sampled_from([200, 429, 500, 503]), max_size=20))
    def answer(self, data: st.DataObject, statuses: list[int]) -> None:
        """Let one endpoint answer."""
        host = data.draw(st.sampled_from(self.hosts))
        for status in statuses:
            self.expect_told(self.detector.record(host, status, self.now))

    @precondition(lambda self: self.settings.consecutive_5xx < NEVER)
    @rule(data=st.data())
    def fail_in_a_row(self, data: st.DataObject) -> None:
        """Let endpoints fail as often as it takes, in any order."""
        for host in data.draw(st.permutations(self.hosts)):
            for _ in range(self.settings.consecutive_5xx):
                self.expect_told(self.detector.record(host, 503, self.now))

    @rule(low=st.integers(0, 9), percent=st.integers(0, 100), usual=st.integers(0, 3))
    def answer_much(self, low: int, percent: int, usual: int) -> None:
        """Let all endpoints answer often enough to have success rates, one of them worse."""
        for number, host in enumerate(self.hosts):
            failing = percent if number == low else usual
            # Spread out, so that not all of them are failures in a row.
            changes = [
                self.detector.record(host, 500 if place * 37 % 100 < failing else 200, self.now)
                for place in range(100)
            ]
            self.expect_told(any(changes))

    @rule(after_s=st.floats(0, 60))
    def wait(self, after_s: float) -> None:
        """Let time pass, with the sweeps that are due."""
        until = self.now + after_s
        while self.detector.next_sweep_at <= until:
            self.now = self.detector.next_sweep_at
            self.expect_told(self.detector.sweep(self.now))
        self.now = until

    @rule()
    def sweep_early(self) -> None:
        """Sweep now."""
        self.expect_told(self.detector.sweep(self.now))

    @rule(data=st.data())
    def fail_check(self, data: st.DataObject) -> None:
        """Make an endpoint unhealthy."""
        data.draw(st.sampled_from(self.hosts)).is_healthy = False
        self.rotating = [host for host in self.hosts if host.is_rotating]

    @rule(data=st.data())
    def pass_check(self, data: st.DataObject) -> None:
        """Let an endpoint pass a check that makes it healthy: it is back."""
        host = data.draw(st.sampled_from(self.hosts))
        host.is_healthy = True
        self.rotating = [host for host in self.hosts if host.is_rotating]
        self.ejected_at.pop(host, None)

        self.expect_told(self.detector.passed_check(host, self.now))

        assert host.is_rotating

    def expect_told(self, has_changed: bool) -> None:  # noqa: FBT001  # what a call returned
        """Check what a call of the detector said against what it did."""
        rotating = [host for host in self.hosts if host.is_rotating]
        # A sweep may return an endpoint and eject it again, which counts as a change.
        assert has_changed == (rotating != self.rotating or bool(self.detector.events))
        for event in self.detector.events:
            assert event.host in self.rotating or event.reason is EjectionReason.SUCCESS_RATE
            assert event.host.is_ejected
            # A sweep may return an endpoint and eject it again.
            self.expect_served(event.host)
            self.ejected_at[event.host] = self.now
        self.detector.events.clear()
        for host in [host for host in self.ejected_at if not host.is_ejected]:
            self.expect_served(host)
        self.rotating = rotating

    def expect_served(self, host: Host) -> None:
        """Check that an ejection that ended lasted the base time at least.

        With a negative multiplier it would be shorter.
        """
        ejected_at = self.ejected_at.pop(host, None)
        if ejected_at is not None:
            assert self.now >= ejected_at + self.settings.base_ejection_s

    @invariant()
    def share_of_ejected_is_capped(self) -> None:
        """Whatever ejected them."""
        out = len(ejected(self.hosts))
        assert 100 * out <= self.settings.max_ejection_percent * len(self.hosts)

    @invariant()
    def every_ejection_is_known_and_ends(self) -> None:
        """By the first sweep after the longest ejection, which is at most an interval later."""
        assert [host for host in self.hosts if host.is_ejected] == sorted(
            self.ejected_at, key=self.hosts.index
        )
        for ejected_at in self.ejected_at.values():
            assert self.now <= ejected_at + self.longest_s + self.settings.interval_s


TestCluster = Cluster.TestCase
TestCluster.settings = settings(deadline=None, max_examples=100, stateful_step_count=40)
