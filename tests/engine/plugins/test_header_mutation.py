"""Plugin `header_mutation`."""

import pytest

from tests.engine.plugins.sites import SITE
from vsr.engine.plugins.header_mutation import HeaderMutationPlugin, ignored_names
from vsr.engine.plugins.plugin import Capability
from vsr.errors import ConfigRejected
from vsr.headers import Headers
from vsr.resources.plugin import HeaderMutation
from vsr.routing.effect import Effect, HeaderEdit, apply_headers


def test_headers_are_set_and_removed_in_lower_case() -> None:
    """The document's spelling is for people; on the wire names are lower case."""
    config = HeaderMutation(
        sets=((b" X-Team ", b"alpha"), (b"x-tier", b"gold")), removals=(b"X-Drop",)
    )

    plugin = HeaderMutationPlugin(config, SITE)

    part = plugin.contribution
    assert part.edits == (HeaderEdit(b"x-team", b"alpha"), HeaderEdit(b"x-tier", b"gold"))
    assert part.removes == {b"x-drop"}
    assert (part.answer, part.body) == (None, None)
    assert plugin.capability is Capability.REQUEST_SAFE


def test_last_value_of_a_header_counts() -> None:
    """The edits say each name once, at the place of its last mention."""
    config = HeaderMutation(sets=((b"a", b"1"), (b"b", b"2"), (b"A", b"3")))

    edits = HeaderMutationPlugin(config, SITE).contribution.edits

    assert edits == (HeaderEdit(b"b", b"2"), HeaderEdit(b"a", b"3"))


def test_set_replaces_what_the_request_carries_and_outlives_a_removal() -> None:
    """Removals come first, so a header that is removed and set is there."""
    config = HeaderMutation(sets=((b"a", b"new"),), removals=(b"a", b"b"))
    part = HeaderMutationPlugin(config, SITE).contribution
    headers = Headers([(b"a", b"1"), (b"a", b"2"), (b"b", b"3"), (b"c", b"4")])

    apply_headers(headers, Effect(part.removes, part.edits))

    assert headers.lines == [(b"c", b"4"), (b"a", b"new")]


@pytest.mark.parametrize(
    "name",
    [
        b"x-envoy-max-retries",
        b" X-Envoy-Anything",
        b":path",
        b"Host",
        b"content-length",
        b"Transfer-Encoding",
        b"connection",
    ],
)
def test_headers_of_proxy_and_connection_are_left_alone(name: bytes) -> None:
    """They say how the message travels, which is not the author's business; the load can warn."""
    config = HeaderMutation(sets=((name, b"1"), (b"x-a", b"1")), removals=(name, b"x-b"))

    part = HeaderMutationPlugin(config, SITE).contribution

    assert part.edits == (HeaderEdit(b"x-a", b"1"),)
    assert part.removes == {b"x-b"}
    assert ignored_names(config) == [name.decode()] * 2


@pytest.mark.parametrize(
    ("name", "value"),
    [(b"x y", b"1"), (b"", b"1"), ("ä".encode(), b"1"), (b"x", b"a\r\nx-evil: 1"), (b"x", b"\x00")],
)
def test_header_that_cannot_be_sent_is_refused(name: bytes, value: bytes) -> None:
    """A line break in a value would be a header of its own."""
    config = HeaderMutation(sets=((b"ok", b"1"), (name, value), (name, value)))

    with pytest.raises(ConfigRejected) as caught:
        HeaderMutationPlugin(config, SITE)

    assert len(caught.value.problems) == 2
    assert repr(name.decode()) in str(caught.value)
    assert "evil" not in str(caught.value)
