"""What the management API wants to know of a document."""

import json
from pathlib import Path

import pytest

from vsr.config.attempt import Code
from vsr.config.inspecting import Subject
from vsr.config.inspection import Inspect, Inspected, Mode

TEXT = b"""
listeners: [{name: main, address: 127.0.0.1, port: 8899, api_keys: [canary-inline, "${KEY}"]}]
providers:
  models:
    - name: small
      backend_refs: [{endpoint: "127.0.0.1:1", api_key: "file:secret"}]
routing: {}
"""
ENVIRON = {"KEY": "canary-environment", "PORT": "canary-port"}


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Return a document's place, with a secret beside it."""
    (tmp_path / "secret").write_bytes(b"canary-file\n")
    return str(tmp_path / "config.yaml")


def ask(text: bytes, file: str, **more: object) -> Inspected:
    """Ask about a text."""
    question = Inspect(text, file=file, wants_json=True, wants_yaml=True, **more)  # type: ignore[arg-type]  # passed on
    found, valid = Subject(ENVIRON).of(question)
    assert (valid is None) is bool(found.reasons)
    return found


def keys(found: Inspected) -> list[str]:
    """Return the keys of the listener, and that of the backend."""
    document = json.loads(bytes(found.json))
    backend = document["providers"]["models"][0]["backend_refs"][0]
    return [*document["listeners"][0]["api_keys"], backend["api_key"]]


def test_secrets_are_replaced_unless_they_may_be_seen(file: str) -> None:
    """What the environment and files hold is shown to nobody."""
    hidden, shown = ask(TEXT, file), ask(TEXT, file, reveals=True)

    assert keys(hidden) == ["<redacted>", "<redacted>", "file:secret"]
    assert keys(shown) == ["canary-inline", "${KEY}", "file:secret"]
    assert "canary" not in hidden.yaml + shown.yaml


def test_merged_document_is_told_with_what_changes(file: str) -> None:
    """Against the one that there is."""
    patch = b"listeners: [{name: main, address: 127.0.0.1, port: 8899, api_keys: [canary-new]}]"

    found = ask(patch, file, mode=Mode.MERGE, base=TEXT)

    assert b"canary-new" in found.candidate
    assert b"file:secret" in found.candidate
    assert found.changes is not None
    assert [(each.path, each.before, each.after) for each in found.changes] == [
        ("listeners[main].api_keys[0]", "<redacted>", "<redacted>"),
        ("listeners[main].api_keys[1]", "<redacted>", None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace(b"name: main", b"name: 7"),
        TEXT.replace(b'"${KEY}"', b'"${KEY} "'),
        TEXT.replace(b"port: 8899", b"port: ${KEY}"),
        TEXT.replace(b"canary-inline", b"{canary-inline: 1}"),
        TEXT.replace(b"name: small", b"name: small, reliability: {lb_policy: '${KEY}'}"),
        TEXT.replace(b"routing: {}", b"routing: {decisions: [{name: d, rules: {type: '${KEY}'}}]}"),
        TEXT.replace(b"routing: {}", b"routing: {decisions: [{name: '${KEY}'}, {name: '${KEY}'}]}"),
        TEXT.replace(b"127.0.0.1:1", b"${KEY}@x:1"),
        TEXT + b"canary-inline: 1\n",
        TEXT + b"global: {router: {canary: [}\n",
    ],
)
def test_faults_quote_no_secret(text: bytes, file: str) -> None:
    """Whatever is wrong and wherever the secret stands."""
    found = ask(text, file)

    told = repr([found.reasons, found.warnings]) + found.yaml
    for secret in ("canary-environment", "canary-file", "canary-inline"):
        assert secret not in told


def test_text_that_is_not_valid_has_no_changes(file: str) -> None:
    """Nor has one whose base is not."""
    assert ask(b"a: [", file, base=TEXT).changes is None
    assert ask(TEXT, file, base=b"a: [").changes is None
    assert ask(TEXT, file).changes is None
    assert ask(TEXT, file, base=TEXT).changes == ()
    assert ask(TEXT, file, base=TEXT, compares=False).changes is None


def test_what_nobody_wants_is_not_made(file: str) -> None:
    """It takes its time."""
    found, valid = Subject(ENVIRON).of(Inspect(TEXT, file=file))

    assert (bytes(found.json), found.yaml) == (b"null", "")
    assert valid is not None


@pytest.mark.parametrize("patch", [b"\xff", b"[", b"- 1"])
def test_part_that_cannot_be_merged_is_told(patch: bytes, file: str) -> None:
    """As no YAML, with its place."""
    found = ask(patch, file, mode=Mode.MERGE, base=TEXT)

    assert {reason.code for reason in found.reasons} == {Code.INVALID_DOCUMENT}
    assert {reason.file for reason in found.reasons} == {"patch"}


def test_who_may_not_write_lets_no_other_files_be_read(file: str, tmp_path: Path) -> None:
    """Faults quote what files hold; those that the document names already are known."""
    (tmp_path / "other.yaml").write_bytes(b"steps: canary-other\n")
    (tmp_path / "other").write_bytes(b"canary-other\n")
    graph = TEXT.replace(b"routing: {}", b"routing: {graphs: {g: {file: other.yaml}}}")
    secret = TEXT.replace(b"file:secret", b"file:other")

    for text in (graph, secret):
        found = ask(text, file, may_read_files=False, known=TEXT)
        assert [reason.code for reason in found.reasons] == [Code.ARTIFACT_UNAVAILABLE]
        assert "may not write the document" in found.reasons[0].message
    assert ask(TEXT, file, may_read_files=False, known=TEXT).reasons == ()
    assert ask(secret, file).reasons == ()


def test_recipe_is_put_in_its_place(file: str) -> None:
    """Or taken away by an empty text."""
    recipe = b"name: cheap\nrouting: {decisions: []}\n"

    written = ask(recipe, file, base=TEXT, recipe="")
    gone = ask(b"", file, base=written.candidate, recipe="cheap")
    again = ask(b"", file, base=gone.candidate, recipe="cheap")

    assert json.loads(bytes(written.json))["recipes"][0]["name"] == "cheap"
    assert "recipes" not in json.loads(bytes(gone.json))
    assert [(each.code, each.path) for each in again.reasons] == [
        (Code.UNRESOLVED_REFERENCE, "recipes")
    ]
