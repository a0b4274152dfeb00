"""Who asks the management API, and what they may do."""

import msgspec
import pytest

from vsr.admin.access import caller_of, check_browser
from vsr.admin.answer import Refusal
from vsr.headers import HeaderLine
from vsr.resources.management import Management, Token

TOKENS = (Token("VIEW", "viewer"), Token("RUN", "operator"), Token("ROOT", "admin"))
BEARER = Management(asks_token=True, tokens=TOKENS)
ENVIRON = {"VIEW": "view-token", "RUN": "run-token", "ROOT": "root-token"}


def bearer(token: bytes) -> list[HeaderLine]:
    """Return the header of a token."""
    return [(b"authorization", b"Bearer " + token)]


def test_everybody_is_an_administrator_without_tokens() -> None:
    """Whoever reaches the API then may do anything."""
    caller = caller_of(Management(), {}, [])

    assert (caller.principal, caller.may("config.write"), caller.sees_secrets) == (
        "anonymous",
        True,
        True,
    )


@pytest.mark.parametrize(
    ("token", "role", "writes", "drains", "sees"),
    [
        (b"view-token", "viewer", False, False, False),
        (b"run-token", "operator", True, False, False),
        (b"root-token", "admin", True, True, True),
    ],
)
def test_token_gives_its_role(
    token: bytes, role: str, *, writes: bool, drains: bool, sees: bool
) -> None:
    """With the permissions of the reference's table."""
    caller = caller_of(BEARER, ENVIRON, bearer(token))

    assert caller.principal == role
    assert caller.may("config.read")
    assert (caller.may("config.write"), caller.may("process.drain"), caller.sees_secrets) == (
        writes,
        drains,
        sees,
    )


@pytest.mark.parametrize("scheme", [b"bearer", b"BEARER", b"Bearer  "])
def test_scheme_is_of_any_case(scheme: bytes) -> None:
    """Source: RFC 9110, section 11.1."""
    assert caller_of(BEARER, ENVIRON, [(b"authorization", scheme + b" view-token")]).principal


@pytest.mark.parametrize(
    "lines",
    [
        [],
        bearer(b""),
        bearer(b"view-toke"),
        bearer(b"view-tokenn"),
        bearer(b"\xff\xfe"),
        [(b"authorization", b"Basic view-token")],
        [(b"x-api-key", b"view-token")],
    ],
)
def test_anything_but_a_token_is_refused(lines: list[HeaderLine]) -> None:
    """401, with the scheme that is asked for."""
    with pytest.raises(Refusal) as caught:
        caller_of(BEARER, ENVIRON, lines)

    assert (caught.value.status, caught.value.code) == (401, "UNAUTHORIZED")
    assert dict(caught.value.lines)[b"www-authenticate"].startswith(b"Bearer")


@pytest.mark.parametrize("environ", [{}, {"VIEW": "", "RUN": "  "}])
def test_no_token_in_the_environment_lets_nobody_in(environ: dict[str, str]) -> None:
    """An empty token least of all."""
    for lines in ([], bearer(b""), bearer(b"x")):
        with pytest.raises(Refusal) as caught:
            caller_of(BEARER, environ, lines)
        assert caught.value.code == "MANAGEMENT_AUTH_NOT_CONFIGURED"


def test_document_may_name_roles_of_its_own() -> None:
    """They permit what they say, and nothing else."""
    management = msgspec.structs.replace(
        BEARER,
        tokens=(Token("RUN", "pager"), Token("VIEW", "nobody")),
        roles=(("pager", frozenset({"process.drain"})),),
    )

    pager = caller_of(management, ENVIRON, bearer(b"run-token"))
    nobody = caller_of(management, ENVIRON, bearer(b"view-token"))

    assert (pager.may("process.drain"), pager.may("config.read")) == (True, False)
    assert nobody.permissions == frozenset()


@pytest.mark.parametrize(
    ("method", "lines", "is_refused"),
    [
        (b"GET", [(b"host", b"127.0.0.1:8080")], False),
        (b"GET", [(b"host", b"localhost")], False),
        (b"GET", [(b"host", b"[::1]:8080")], False),
        (b"GET", [(b"host", b"10.0.0.7")], False),
        (b"GET", [(b"host", b"evil.example:8080")], True),
        (b"GET", [(b"host", b"127.0.0.1.evil.example")], True),
        (b"GET", [(b"host", b"localhost"), (b"origin", b"http://evil")], False),
        (b"POST", [(b"host", b"localhost"), (b"origin", b"http://evil")], True),
        (b"POST", [(b"host", b"localhost"), (b"origin", b"null")], True),
        (b"POST", [(b"host", b"localhost")], False),
    ],
)
def test_web_page_gets_nowhere_without_tokens(
    method: bytes, lines: list[HeaderLine], *, is_refused: bool
) -> None:
    """Neither by a form nor by a name of its own that leads to loopback."""
    if not is_refused:
        check_browser(method, lines, Management())
        return
    with pytest.raises(Refusal) as caught:
        check_browser(method, lines, Management())
    assert caught.value.status == 403
    check_browser(method, lines, BEARER)  # a page has no token


@pytest.mark.parametrize(
    ("site", "is_refused"),
    [(b"cross-site", True), (b"Same-Site", True), (b"same-origin", False), (b"none", False)],
)
def test_page_that_the_browser_tells_of_changes_nothing(site: bytes, *, is_refused: bool) -> None:
    """Also where it sends no Origin."""
    lines = [(b"host", b"localhost"), (b"sec-fetch-site", site)]

    check_browser(b"GET", lines, Management())
    if not is_refused:
        check_browser(b"POST", lines, Management())
        return
    with pytest.raises(Refusal) as caught:
        check_browser(b"POST", lines, Management())
    assert caught.value.status == 403
