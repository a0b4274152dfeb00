"""Messages about a document without its credentials."""

from hypothesis import given
from hypothesis import strategies as st

from vsr.config.document.objects import DocumentObject, fields_of
from vsr.config.document.root import Document
from vsr.config.load import load
from vsr.config.redaction import CREDENTIAL_KEYS, Redactor
from vsr.config.report import Report

TEXT = b"""
listeners: [{name: main, api_keys: [canary-one, abc]}]
providers:
  models:
    - name: small
      provider_model_id: ${NAME}
      backend_refs: [{api_key: 123456789, api_key_env: KEY, extra_headers: {x-a: canary-two}}]
global:
  services:
    management_api: {auth: {tokens: [{env: VSR_TOKEN, role: admin}]}}
"""
ENVIRON = {"NAME": "canary-name", "KEY": "canary-env", "VSR_TOKEN": "canary-token"}


def redactor(text: bytes = TEXT, **files: bytes) -> Redactor:
    """Return what knows the credentials of a document."""
    loaded = load(text, ENVIRON, Report("doc"))
    assert loaded is not None
    return Redactor.of(loaded.values, ENVIRON, files)


def test_every_credential_is_replaced() -> None:
    """Inline, whatever its type, from the environment and from a file."""
    clean = redactor(secret=b"canary-file\n").clean

    for secret in ("canary-one", "123456789", "canary-env", "canary-two", "canary-file"):
        assert clean(f"it says {secret!r}, {secret}x") == "it says <redacted>, <redacted>x"
    assert clean("'canary-name' is no name") == "<redacted> is no name"


def test_short_credential_is_replaced_in_quotes_alone() -> None:
    """Words that contain it stay words."""
    assert redactor().clean("'abc' is no abcdef") == "<redacted> is no abcdef"


def test_name_of_a_variable_is_no_secret() -> None:
    """An author has to be told which one is not set."""
    assert redactor().clean("VSR_TOKEN and KEY") == "VSR_TOKEN and KEY"


def test_longer_credential_goes_first() -> None:
    """Else the end of one that begins with another would be left."""
    clean = redactor(b"listeners: [{api_keys: [canary, canary-longer]}]").clean

    assert clean("canary-longer") == "<redacted>"


def test_keys_are_those_of_all_secret_fields() -> None:
    """A field that becomes a secret one is known here, too."""
    found, pending = set[str](), [DocumentObject]
    while pending:
        cls = pending.pop()
        pending += cls.__subclasses__()
        if cls is not DocumentObject and cls.__module__.startswith("vsr."):
            found |= {key for key, field in fields_of(cls).items() if field.is_secret}

    assert Document in DocumentObject.__subclasses__()
    assert found | {"env", "headers"} == CREDENTIAL_KEYS


@given(st.text(alphabet="abcdefgh-", min_size=5, max_size=12), st.text(max_size=30))
def test_no_credential_outlives_cleaning(secret: str, around: str) -> None:
    """Wherever it stands in a message."""
    cleaned = Redactor((secret,)).clean(f"{around}{secret}{around} {secret!r}")

    assert secret not in cleaned.replace("<redacted>", "|")
