"""Secrets that stand in files: what is read, what is refused, and that none of it is shown."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from vsr.cli import main
from vsr.config.files import DocumentFiles, FileRefused
from vsr.config.report import Report
from vsr.config.secret_files import MAX_SECRET_BYTES
from vsr.config.show import render
from vsr.config.source import check_bytes, check_file, load_document
from vsr.errors import ConfigRejected

DOCUMENT = """
listeners: [{{name: http, address: 127.0.0.1, port: 8801, api_keys: [plain, {secret}]}}]
providers:
  models:
    - name: alpha
      backend_refs: [{{endpoint: "10.0.0.1", api_key: {secret}, extra_headers: {{x-a: {secret}}}}}]
routing:
  decisions:
    - name: one
      modelRefs: [{{model: alpha}}]
      plugins:
        - type: header_mutation
          configuration: {{add: [{{name: x-b, value: {secret}}}]}}
"""
PLACES = [
    "listeners[0].api_keys[1]",
    "providers.models[0].backend_refs[0].api_key",
    "providers.models[0].backend_refs[0].extra_headers.x-a",
    "routing.decisions[0].plugins[0].configuration.add[0].value",
]
"""Where `DOCUMENT` has secrets."""


def write(folder: Path, key: str = "file:keys/a") -> Path:
    """Write the document to a folder, with a file of secrets' folder beside it."""
    (folder / "keys").mkdir(exist_ok=True)
    file = folder / "config.yaml"
    file.write_text(DOCUMENT.format(secret=key))
    return file


def problems(file: Path, environ: dict[str, str] | None = None) -> list[str]:
    """Return why a document is refused, path and all."""
    with pytest.raises(ConfigRejected) as caught:
        check_file(file, environ or {})
    return [str(each).partition(": ")[2] for each in caught.value.problems]


@pytest.mark.parametrize("content", ["canary", "canary\n", "canary\r\n"])
def test_every_secret_may_stand_in_a_file(content: str, tmp_path: Path) -> None:
    """Relative to the document, wherever the process was started; a last line end is left out."""
    file = write(tmp_path)
    (tmp_path / "keys" / "a").write_bytes(content.encode())

    snapshot = check_file(file, {}).snapshot

    [cluster] = snapshot.clusters
    assert cluster.credential == (b"authorization", b"Bearer canary")
    assert cluster.route_headers == ((b"x-a", b"canary"),)
    assert snapshot.listeners[0].api_keys == (b"plain", b"canary")


def test_path_may_be_absolute_and_come_from_the_environment(tmp_path: Path) -> None:
    """A link is followed: that is how secrets are mounted."""
    file = write(tmp_path, "'file:${DIR}/link'")
    (tmp_path / "keys" / "a").write_text("canary")
    (tmp_path / "keys" / "link").symlink_to("a")

    checked = check_file(file, {"DIR": str(tmp_path / "keys")})

    assert checked.snapshot.clusters[0].credential == (b"authorization", b"Bearer canary")


def test_value_of_the_environment_is_no_reference(tmp_path: Path) -> None:
    """So a secret may begin with `file:`, and nobody who sets variables can have files read."""
    file = write(tmp_path, "'${KEY}'")
    (tmp_path / "keys" / "a").write_text("canary")

    checked = check_file(file, {"KEY": "file:keys/a"})

    assert checked.snapshot.clusters[0].credential == (b"authorization", b"Bearer file:keys/a")


def test_variable_of_a_backend_is_no_reference_either(tmp_path: Path) -> None:
    """`api_key_env` gives the secret itself."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "providers: {models: [{name: a, backend_refs: [{endpoint: a, api_key_env: K}]}]}"
    )

    checked = check_file(file, {"K": "file:keys/a"})

    assert checked.snapshot.clusters[0].credential == (b"authorization", b"Bearer file:keys/a")


def test_what_is_no_secret_is_no_reference(tmp_path: Path) -> None:
    """It stays the text that it is."""
    file = tmp_path / "config.yaml"
    file.write_text("providers: {models: [{name: 'file:x', backend_refs: [{endpoint: a}]}]}")

    assert check_file(file, {}).snapshot.clusters[0].name == "file:x"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\n", "a header line can't carry it"),
        (b"canary\n\n", "a header line can't carry it"),
        (b"canary\nmore", "a header line can't carry it"),
        (b" canary", "a header line can't carry it"),
        (b"canary ", "a header line can't carry it"),
        (b"canary\x00", "a header line can't carry it"),
        ("canaryé".encode(), "a header line can't carry it"),
        (b"canary" * 11_000, f"it is longer than {MAX_SECRET_BYTES} bytes"),
    ],
)
def test_content_that_is_no_secret_is_refused_without_a_word_of_it(
    content: bytes, why: str, tmp_path: Path
) -> None:
    """At each place, with the reference as written, the reason and what to do."""
    file = write(tmp_path)
    (tmp_path / "keys" / "a").write_bytes(content)

    found = problems(file)

    assert sorted(each.partition(": ")[0] for each in found) == PLACES
    assert all(f"can't be read from 'file:keys/a', {why}" in each for each in found)
    assert "canary" not in "".join(found)


def test_limit_holds_for_a_file_that_was_read_under_another_one(tmp_path: Path) -> None:
    """As an authority it may be larger than as a secret."""
    (tmp_path / "a").write_bytes(b"a" * (MAX_SECRET_BYTES + 1))
    files = DocumentFiles(tmp_path)
    assert files.read("a", MAX_SECRET_BYTES + 1)

    with pytest.raises(FileRefused, match="it is longer than 65536 bytes"):
        files.read("a", MAX_SECRET_BYTES)


def test_largest_secret_is_read(tmp_path: Path) -> None:
    """Its size is within the limit to the byte."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "a").write_bytes(b"a" * MAX_SECRET_BYTES)

    assert check_file(write(tmp_path), {}).snapshot.clusters


def make_missing(file: Path) -> None:
    """Leave it missing."""


def make_folder(file: Path) -> None:
    """Make it a folder."""
    file.mkdir()


def make_pipe(file: Path) -> None:
    """Make it a pipe that nobody writes to."""
    os.mkfifo(file)


def make_writable(file: Path) -> None:
    """Let everybody write it."""
    file.write_text("canary")
    file.chmod(0o602)


def make_link(file: Path) -> None:
    """Let it lead nowhere."""
    file.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (make_missing, "No such file or directory, correct the path; a relative one starts at"),
        (make_folder, "it is not a regular file, correct the path"),
        (make_pipe, "it is not a regular file, correct the path"),
        (make_writable, "everybody may write it, take that permission away with chmod o-w"),
        (make_link, "No such file or directory"),
    ],
)
def test_file_that_is_not_fit_is_refused(
    make: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    """Nothing waits for it, and nobody else can have put the secret there."""
    file = write(tmp_path)
    make(tmp_path / "keys" / "a")

    assert all(why in each for each in problems(file))


@pytest.mark.parametrize("name", ["", "a\0b", "/dev/zero", "x" * 300])
def test_odd_paths_are_refused(name: str, tmp_path: Path) -> None:
    """A folder, no path at all, a device, a name that no file has."""
    file = write(tmp_path, '"file:{}"'.format(name.replace("\0", "\\0")))

    assert len(problems(file)) == len(PLACES)


def test_document_that_is_no_file_names_none(tmp_path: Path) -> None:
    """Who may send a document need not be allowed to read this host's files."""
    secret = tmp_path / "a"
    secret.write_text("canary")
    data = DOCUMENT.format(secret=f"file:{secret}").encode()

    with pytest.raises(ConfigRejected, match="only a document that is a file itself"):
        check_bytes(data, {}, Report("sent"))


@pytest.mark.parametrize("key", ["'file:keys/a'", "'file:${DIR}/a'"])
def test_shown_document_has_the_reference(key: str, tmp_path: Path) -> None:
    """As it was written; other secrets are replaced, and so is one that only looks like one."""
    file = write(tmp_path, key)
    (tmp_path / "keys" / "a").write_text("canary")
    valid = load_document(file, {"DIR": "keys"})

    text = render(valid.document, valid.loaded.lines)

    assert "canary" not in text
    document = yaml.safe_load(text)
    reference = key.strip("'")
    [ref] = document["providers"]["models"][0]["backend_refs"]
    assert (ref["api_key"], ref["extra_headers"]) == (reference, {"x-a": reference})
    assert document["listeners"][0]["api_keys"] == ["<redacted>", reference]


def test_value_of_the_environment_that_looks_like_a_reference_is_not_shown(tmp_path: Path) -> None:
    """It is the secret itself."""
    file = write(tmp_path, "'${KEY}'")
    valid = load_document(file, {"KEY": "file:canary"})

    assert "canary" not in render(valid.document, valid.loaded.lines)


def test_commands_read_the_files_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`config validate` tells what the Router would, and `config show` no content."""
    file = write(tmp_path)
    monkeypatch.chdir("/")
    missing = CliRunner().invoke(main, ["config", "validate", str(file)])
    (tmp_path / "keys" / "a").write_text("canary")
    good = CliRunner().invoke(main, ["config", "validate", "--serve", "standalone", str(file)])
    shown = CliRunner().invoke(main, ["config", "show", "--redact", str(file)])

    assert (missing.exit_code, good.exit_code, shown.exit_code) == (1, 0, 0)
    assert "can't be read from 'file:keys/a'" in missing.stderr
    assert "file:keys/a" in shown.output
    assert "canary" not in missing.output + good.output + shown.output
