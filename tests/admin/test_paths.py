"""Which endpoints a path has."""

import pytest

from vsr.admin.answer import Answer
from vsr.admin.call import Call
from vsr.admin.paths import Paths
from vsr.admin.routes import Route


async def _nothing(_call: Call) -> Answer:  # noqa: ASYNC124  # as handlers are
    return Answer(200, b"")


def _route(method: str, path: str) -> Route:
    return Route(method, path, "", path, _nothing, {})


PATHS = Paths.of(
    [
        _route("GET", "/a"),
        _route("PUT", "/a/{name}"),
        _route("DELETE", "/a/{name}"),
        _route("POST", "/a/check"),
        _route("GET", "/a/{name}/b/{other}"),
    ]
)


@pytest.mark.parametrize(
    ("path", "methods", "parameters"),
    [
        ("/a", ["GET"], {}),
        ("/%61", ["GET"], {}),
        ("/a/x", ["DELETE", "PUT"], {"name": "x"}),
        ("/a/x%2Fy%20z", ["DELETE", "PUT"], {"name": "x/y z"}),
        ("/a/check", ["POST"], {}),
        ("/a/x/b/%C3%A9", ["GET"], {"name": "x", "other": "é"}),
        ("/a/", [], {}),
        ("/a/x/", [], {}),
        ("/a%2Fx", [], {}),
        ("/a%2Fcheck", [], {}),
        ("/a//b/x", [], {}),
        ("a", [], {}),
        ("", [], {}),
        ("*", [], {}),
    ],
)
def test_path_leads_to_its_endpoints(
    path: str, methods: list[str], parameters: dict[str, str]
) -> None:
    """Names stand for any one segment; escapes for what they mean, and part nothing."""
    found = PATHS.find(path)

    assert sorted(found.routes) == methods
    assert found.parameters == parameters


def test_path_that_is_written_out_goes_before_a_template() -> None:
    """Where both have the method."""
    paths = Paths.of([_route("GET", "/a/b"), _route("GET", "/a/{name}")])

    assert paths.find("/a/b").routes["GET"].path == "/a/b"
    assert paths.find("/a/c").routes["GET"].path == "/a/{name}"
