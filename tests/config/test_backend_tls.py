"""TLS settings of backends as they are loaded: every fault of the files is told."""

import datetime
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from vsr.config.report import Report
from vsr.config.serving import Gateway
from vsr.config.source import check_bytes, check_file, load_document
from vsr.config.validate.backend_tls import MAX_PEM_BYTES
from vsr.errors import ConfigRejected
from vsr.resources.backend_tls import SYSTEM_TLS, BackendTls, TlsVersion

AUTHORITY = trustme.CA()
ISSUED, OTHER = AUTHORITY.issue_cert("a.test"), AUTHORITY.issue_cert("a.test")
CHAIN = b"".join(pem.bytes() for pem in ISSUED.cert_chain_pems)
KEY, OTHER_KEY = ISSUED.private_key_pem.bytes(), OTHER.private_key_pem.bytes()
ROOT = AUTHORITY.cert_pem.bytes()
BROKEN = ROOT[:200] + b"\n-----END CERTIFICATE-----\n"
FILES = "ca_file: ca, cert_file: cert, key_file: key"
WHERE = "providers.models[0].backend_refs[0].tls"


def key_as(encoding: Encoding, *, encrypted: bool = False) -> bytes:
    """Return the key in another form."""
    protection = BestAvailableEncryption(b"canary") if encrypted else NoEncryption()
    key = load_pem_private_key(KEY, None)
    return key.private_bytes(encoding, PrivateFormat.PKCS8, protection)


def revocations() -> bytes:
    """Return a list of revoked certificates, which OpenSSL takes beside authorities."""
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    key = load_pem_private_key(AUTHORITY.private_key_pem.bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    builder = x509.CertificateRevocationListBuilder(
        x509.load_pem_x509_certificate(ROOT).subject, now, now + datetime.timedelta(days=1)
    )
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM)


def write(folder: Path, tls: str, *, url: str = "https://a.test", **files: bytes) -> Path:
    """Write a document and files to a folder."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    file = folder / "config.yaml"
    ref = f"{{base_url: '{url}', tls: {{{tls}}}}}"
    file.write_text(f"providers: {{models: [{{name: a, backend_refs: [{ref}]}}]}}")
    return file


def problems(file: Path) -> list[str]:
    """Return why a document is refused, without its name and line."""
    with pytest.raises(ConfigRejected) as caught:
        load_document(file, {})
    return [str(each).partition(": ")[2] for each in caught.value.problems]


def test_settings_hold_what_the_files_held(tmp_path: Path) -> None:
    """To the byte, and nothing of it is ever shown by accident."""
    tls = f"{FILES}, server_name: b.test, min_version: TLSv1.3"
    file = write(tmp_path, tls, ca=ROOT, cert=CHAIN, key=KEY)

    [endpoint] = check_file(file, {}).snapshot.clusters[0].endpoints

    assert endpoint.tls_settings == BackendTls(ROOT, CHAIN, KEY, TlsVersion.TLS_1_3)
    assert (endpoint.host, endpoint.server_name) == ("a.test", "b.test")
    assert "PRIVATE KEY" not in repr(endpoint)


def test_backend_without_settings_has_those_of_the_system(tmp_path: Path) -> None:
    """Its name is its host."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "providers: {models: [{name: a, backend_refs: [{base_url: 'https://a.test'}]}]}"
    )

    [endpoint] = check_file(file, {}).snapshot.clusters[0].endpoints

    assert (endpoint.tls_settings, endpoint.server_name) == (SYSTEM_TLS, "a.test")


CONTENTS = {
    "no authorities": (
        {"ca": b"hello\n"},
        "ca_file",
        "it holds no certificate in PEM, or a broken",
    ),
    "key as authority": ({"ca": KEY}, "ca_file", "it holds no certificate in PEM, or a broken"),
    "broken authority": ({"ca": ROOT + BROKEN}, "ca_file", "it holds no certificate in PEM, or a"),
    "no authority": ({"ca": revocations()}, "ca_file", "it holds no certificate"),
    "empty file": ({"ca": b""}, "ca_file", "it is empty"),
    "large file": (
        {"ca": b"#" * (MAX_PEM_BYTES + 1)},
        "ca_file",
        "it is longer than 4194304 bytes",
    ),
    "no certificate": ({"cert": KEY}, "cert_file", "it holds no certificate in PEM, or a broken"),
    "broken certificate": ({"cert": BROKEN}, "cert_file", "it holds no certificate in PEM, or a"),
    "key of another": ({"key": OTHER_KEY}, "key_file", "it does not belong to the certificate"),
    "no key": ({"key": CHAIN}, "key_file", "it holds no key in PEM"),
    "binary key": ({"key": key_as(Encoding.DER)}, "key_file", "it holds no key in PEM"),
    "encrypted key": (
        {"key": key_as(Encoding.PEM, encrypted=True)},
        "key_file",
        "it is encrypted, and nobody is there to give its password",
    ),
    "broken key": ({"key": KEY.replace(b"M", b"A", 9)}, "key_file", "it "),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_file_that_openssl_cannot_use_is_refused_by_name(name: str, tmp_path: Path) -> None:
    """With the reason, and without a word of its content; `config validate` tells it too."""
    contents, key, why = CONTENTS[name]
    files = {"ca": ROOT, "cert": CHAIN, "key": KEY, **contents}
    file = write(tmp_path, FILES, ca=files["ca"], cert=files["cert"], key=files["key"])

    [problem] = problems(file)

    assert problem.startswith(f"{WHERE}.{key}: ")
    assert why in problem
    assert "BEGIN" not in problem


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    """Of the authorities and of the key."""
    file = write(tmp_path, FILES, ca=b"x", cert=CHAIN, key=OTHER_KEY)

    assert [each.partition(": ")[0] for each in problems(file)] == [
        f"{WHERE}.ca_file",
        f"{WHERE}.key_file",
    ]


@pytest.mark.parametrize(("given", "missing"), [("cert", "key"), ("key", "cert")])
def test_certificate_and_key_come_together(given: str, missing: str, tmp_path: Path) -> None:
    """One alone is a slip."""
    file = write(tmp_path, f"{given}_file: x", x=CHAIN)

    [problem] = problems(file)

    assert problem.startswith(f"{WHERE}.{missing}_file: is missing")


def test_missing_and_writable_files_are_refused(tmp_path: Path) -> None:
    """As those of secrets are: whoever may write an authority may be any backend."""
    file = write(tmp_path, FILES, ca=ROOT, key=KEY)
    (tmp_path / "ca").chmod(0o646)

    first, second = problems(file)

    assert "tls.ca_file: 'ca' can't be used, everybody may write it" in first
    assert "tls.cert_file: 'cert' can't be used, No such file or directory" in second


@pytest.mark.parametrize("tls", ["", "server_name: a.test", "ca_file: ca"])
def test_settings_at_a_cleartext_backend_are_refused(tls: str, tmp_path: Path) -> None:
    """Their author thinks that the connection is encrypted."""
    file = write(tmp_path, tls, url="http://a.test", ca=ROOT)

    [problem] = problems(file)

    assert problem.startswith(f"{WHERE}: stands at a cleartext backend")


@pytest.mark.parametrize("name", ["a b", "", "a.test.", "https://a.test", "a.test:443", "*.test"])
def test_server_name_is_a_name_or_address(name: str, tmp_path: Path) -> None:
    """As a certificate has it."""
    file = write(tmp_path, f"server_name: '{name}'")

    [problem] = problems(file)

    assert problem.startswith(f"{WHERE}.server_name: is no name of a server")


@pytest.mark.parametrize(
    "tls", ["verify: false", "insecure_skip_verify: true", "min_version: SSLv3"]
)
def test_nothing_weakens_the_check(tls: str, tmp_path: Path) -> None:
    """There is no such key and no older version."""
    [problem] = problems(write(tmp_path, tls))

    assert problem.startswith(f"{WHERE}.{tls.partition(':')[0]}: ")


def test_address_needs_a_name_to_be_checked_against(tmp_path: Path) -> None:
    """Which settings without one don't give."""
    file = write(tmp_path, "ca_file: ca", url="https://10.0.0.1", ca=ROOT)

    [problem] = problems(file)

    assert "https needs a DNS name or tls.server_name" in problem
    named = write(tmp_path, "server_name: a.test", url="https://10.0.0.1")
    assert check_file(named, {}).snapshot.clusters


def test_document_that_is_no_file_names_no_files(tmp_path: Path) -> None:
    """As with secrets."""
    file = write(tmp_path, f"ca_file: {tmp_path}/ca", ca=ROOT)

    with pytest.raises(ConfigRejected, match="only a document that is a file itself"):
        check_bytes(file.read_bytes(), {}, Report("sent"))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (
            "providers: {models: [{name: a, backend_refs: [{base_url: 'https://a', tls: {}}]}]}",
            WHERE,
        ),
        ("global: {router: {egress: {}}}", "global.router.egress"),
    ],
)
def test_envoy_does_not_honour_them(text: str, place: str) -> None:
    """Connections are its own there, so that serving behind it is refused."""
    with pytest.raises(ConfigRejected, match="is honored only in standalone mode") as caught:
        check_bytes(text.encode(), {}, Report("doc"), gateway=Gateway.EXTPROC)

    assert place in [each.path for each in caught.value.problems]
