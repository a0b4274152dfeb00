"""The management API in the document."""

import pytest

from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.errors import ConfigRejected
from vsr.resources.listener import ListenerTls
from vsr.resources.management import ROLES, Management, Token, is_loopback

TEXT = """
listeners: [{{name: main, address: 127.0.0.1, port: 8899}}]
providers: {{models: [{{name: small, backend_refs: [{{endpoint: "127.0.0.1:1"}}]}}]}}
routing: {{}}
global: {{services: {{management_api: {api}}}}}
"""


def compiled(api: str) -> Management:
    """Return what an API comes to."""
    text = TEXT.format(api=api).encode()
    return check_bytes(text, {}, Report("doc.yaml")).snapshot.management


def refused(api: str) -> list[tuple[str, str]]:
    """Return why an API is refused."""
    with pytest.raises(ConfigRejected) as caught:
        compiled(api)
    return [
        (each.path.removeprefix("global.services.management_api"), each.what)
        for each in caught.value.problems
    ]


def test_defaults_are_loopback_without_tokens() -> None:
    """As the reference has them."""
    assert compiled("{}") == Management("127.0.0.1", 8080)


def test_tokens_and_roles_are_compiled() -> None:
    """A role of the document takes the place of one that is there."""
    management = compiled(
        "{bind_address: 0.0.0.0, port: 9000, remote_exposure: true, auth: {mode: bearer,"
        " tokens: [{env: A, role: viewer}, {env: B, role: pager}],"
        " roles: {viewer: [health.read], pager: ['*']}}}"
    )

    assert (management.address, management.port, management.is_remote) == ("0.0.0.0", 9000, True)
    assert management.asks_token
    assert management.tokens == (Token("A", "viewer"), Token("B", "pager"))
    assert management.permissions("viewer") == {"health.read"}
    assert management.permissions("pager") == {"*"}
    assert management.permissions("operator") == dict(ROLES)["operator"]


def test_tls_is_compiled() -> None:
    """Paths stand as they were written."""
    assert compiled("{tls: {cert_file: a.pem, key_file: b.pem}}").tls == ListenerTls(
        "a.pem", "b.pem"
    )


@pytest.mark.parametrize(
    ("api", "problems"),
    [
        ("{tls: {cert_file: a.pem}}", [(".tls.key_file", "is missing or blank")]),
        ("{bind_address: 0.0.0.0}", [(".bind_address", "is not of this host alone")]),
        ("{bind_address: '::'}", [(".bind_address", "is not of this host alone")]),
        ("{bind_address: 0.0.0.0, remote_exposure: true}", [(".auth", "must ask for a token")]),
        (
            "{bind_address: 0.0.0.0, remote_exposure: true, auth: {mode: disabled}}",
            [(".auth", "must ask for a token")],
        ),
        (
            "{auth: {mode: bearer, tokens: [{role: viewer}, {env: A, role: king}, {env: B}]}}",
            [
                (".auth.tokens[0].env", "is missing"),
                (".auth.tokens[1].role", "'king' is no role"),
                (".auth.tokens[2].role", "is missing"),
            ],
        ),
    ],
)
def test_what_would_open_it_is_refused(api: str, problems: list[tuple[str, str]]) -> None:
    """Before anything is bound."""
    assert refused(api) == problems


def test_word_that_permits_nothing_is_warned_of() -> None:
    """Another release may know it."""
    text = TEXT.format(api="{auth: {roles: {viewer: [config.raed]}}}").encode()

    checked = check_bytes(text, {}, Report("doc.yaml"))

    [warning] = checked.warnings
    assert "did you mean 'config.read'?" in str(warning)


@pytest.mark.parametrize(
    ("address", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("router.example", False),
        ("", False),
    ],
)
def test_loopback_is_known(address: str, *, is_local: bool) -> None:
    """A name may lead anywhere."""
    assert is_loopback(address) is is_local
