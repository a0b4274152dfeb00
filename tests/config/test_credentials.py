"""The credential chain of a document, and what it comes to for a cluster."""

from ipaddress import IPv4Network

import pytest

from vsr.config.report import Report
from vsr.config.serving import Gateway
from vsr.config.source import check_bytes
from vsr.resources.cluster import Cluster, UserKeys
from vsr.resources.snapshot import Snapshot

MODELS = """
  - {name: keyed, backend_refs: [{provider: openai, api_key: sk-own}]}
  - {name: bare, backend_refs: [{provider: openai}]}
  - {name: claude, backend_refs: [{provider: anthropic}]}
  - {name: azure, backend_refs: [{provider: azure-openai, base_url: "https://a.example"}]}
  - {name: local, backend_refs: [{endpoint: "127.0.0.1:8000"}]}
  - {name: ollama, backend_refs: [{provider: ollama, endpoint: "127.0.0.1:8001"}]}
"""
LOCAL = '\n  - {name: local, backend_refs: [{endpoint: "127.0.0.1:8000"}]}'
OPENAI = UserKeys((b"x-user-openai-key",), b"authorization", b"Bearer ")


def compiled(authz: str = "", models: str = MODELS) -> Snapshot:
    """Return the snapshot of a document whose clients come through a proxy."""
    text = f"providers:\n  models:{models}"
    if authz:
        text += f"\nglobal: {{services: {{authz: {authz}}}}}"
    return check_bytes(text.encode(), {}, Report("test"), gateway=Gateway.EXTPROC).snapshot


def clusters(authz: str = "", models: str = MODELS) -> dict[str, Cluster]:
    """Return its clusters by name."""
    return {cluster.name: cluster for cluster in compiled(authz, models).clusters}


@pytest.mark.parametrize("authz", ["", "{fail_open: false}", "{providers: []}"])
def test_without_providers_users_keys_go_first_and_none_is_needed(authz: str) -> None:
    """Whatever `fail_open` says. Source: the reference's credential chain."""
    found = clusters(authz)

    assert found["keyed"].credential == (b"authorization", b"Bearer sk-own")
    assert {name: cluster.user_keys for name, cluster in found.items()} == {
        "keyed": OPENAI,
        "bare": OPENAI,
        "claude": UserKeys((b"x-user-anthropic-key",), b"x-api-key", b""),
        "azure": UserKeys((b"x-user-azure-openai-key",), b"api-key", b""),
        "local": None,
        "ollama": None,
    }


def test_closed_chain_needs_a_key_where_the_document_has_none() -> None:
    """A backend that takes no credential needs none either."""
    found = clusters("{providers: [{type: header-injection}, {type: static-config}]}")

    needed = {name for name, each in found.items() if each.user_keys and each.user_keys.is_required}
    assert needed == {"bare", "claude", "azure", "local"}


def test_configured_key_that_comes_first_leaves_nothing_to_ask_for() -> None:
    """Users are asked where there is none."""
    chain = "{fail_open: true, providers: [{type: static-config}, {type: header-injection}]}"
    found = clusters(chain)

    assert found["keyed"].user_keys is None
    assert found["keyed"].credential is not None
    assert found["bare"].user_keys == OPENAI


def test_chain_of_injection_alone_does_not_use_configured_keys() -> None:
    """They are not in it."""
    keyed = clusters("{providers: [{type: header-injection}]}")["keyed"]

    assert keyed.credential is None
    assert keyed.user_keys == UserKeys(OPENAI.asked, OPENAI.header, OPENAI.prefix, is_required=True)


def test_chain_of_configured_keys_alone_asks_nobody() -> None:
    """Yet a closed one refuses a call without a key."""
    found = clusters("{providers: [{type: static-config}]}")

    assert found["keyed"].user_keys is None
    assert found["bare"].user_keys == UserKeys((), b"authorization", b"Bearer ", is_required=True)


def test_authored_headers_replace_the_names_and_all_of_them_are_removed() -> None:
    """In any case, with blanks around; links are asked in turn."""
    chain = """{fail_open: true, providers: [
      {type: header-injection, headers: {openai: " X-Team-Key "}},
      {type: static-config},
      {type: header-injection, headers: {openai: x-last, anthropic: x-team-key}}]}"""
    found = clusters(chain)

    assert found["keyed"].user_keys == UserKeys((b"x-team-key",), b"authorization", b"Bearer ")
    assert found["bare"].user_keys == UserKeys(
        (b"x-team-key", b"x-last"), b"authorization", b"Bearer "
    )
    assert found["claude"].user_keys == UserKeys((b"x-team-key",), b"x-api-key", b"")
    assert found["azure"].user_keys is None
    assert compiled(chain).settings.key_headers == {b"x-team-key", b"x-last"}


def test_backend_of_no_provider_goes_by_what_is_written_for_openai() -> None:
    """Only where nobody else is of that provider, and the name is the author's own."""
    chain = "{providers: [{type: header-injection, headers: {openai: x-acme-key}}]}"
    named = "{providers: [{type: header-injection, headers: {openai: x-o, vllm: x-v}}]}"

    [local] = clusters(chain, LOCAL).values()
    assert local.user_keys == UserKeys(
        (b"x-acme-key",), b"authorization", b"Bearer ", is_required=True
    )
    assert clusters(chain)["local"].user_keys == UserKeys(
        (), b"authorization", b"Bearer ", is_required=True
    )
    assert clusters(named, LOCAL)["local"].user_keys == UserKeys(
        (b"x-v",), b"authorization", b"Bearer ", is_required=True
    )
    assert (
        clusters("{providers: [{type: header-injection}], fail_open: true}", LOCAL)[
            "local"
        ].user_keys
        is None
    )


def test_authored_names_of_credentials_are_the_backends_own() -> None:
    """`auth_header` and `auth_prefix` say where a user's key goes, too."""
    models = """
  - {name: odd, backend_refs: [{provider: openai, auth_header: X-Odd, auth_prefix: Token}]}
  - {name: plain, backend_refs: [{provider: openai, auth_prefix: ""}]}
"""
    found = clusters("", models)

    assert found["odd"].user_keys == UserKeys(OPENAI.asked, b"x-odd", b"Token ")
    assert found["plain"].user_keys == UserKeys(OPENAI.asked, b"authorization", b"")


def test_listener_knows_whom_it_trusts() -> None:
    """Names of `authz.identity` in lower case; networks with host bits and mapped ones as IPv4."""
    text = """
listeners:
  - {name: a, address: 127.0.0.1, port: 1}
  - {name: b, address: 127.0.0.1, port: 2, identity: {trust_headers: true,
      trusted_peers: [10.1.2.3/8, "::ffff:192.0.2.0/120"]}}
global: {services: {authz: {identity: {user_id_header: " X-User ", user_groups_header: x-g}}}}
"""
    closed, open_ = check_bytes(text.encode(), {}, Report("test")).snapshot.listeners

    names = frozenset({b"x-user", b"x-g"})
    assert (closed.identity.is_trusted, closed.identity.header_names) == (False, names)
    assert (open_.identity.is_trusted, open_.identity.header_names) == (True, names)
    assert open_.identity.networks == (IPv4Network("10.0.0.0/8"), IPv4Network("192.0.2.0/24"))
