"""Files on disk, and the reference's examples."""

from pathlib import Path

import pytest

from tests.config.reference import reference_dir
from vsr.config.load import MAX_DOCUMENT_BYTES
from vsr.config.source import load_snapshot
from vsr.errors import ConfigRejected

EXAMPLES_ENVIRON = {"OPENAI_API_KEY": "canary", "ANTHROPIC_API_KEY": "canary"}


def problems_of(path: Path) -> list[str]:
    """Return why the file is refused."""
    with pytest.raises(ConfigRejected) as caught:
        load_snapshot(path, EXAMPLES_ENVIRON)
    return [str(problem) for problem in caught.value.problems]


def test_missing_file_is_a_problem(tmp_path: Path) -> None:
    """The message names the file."""
    path = tmp_path / "none.yaml"

    problems = problems_of(path)

    assert problems == [
        f"{path}:1: (document): can't be read, No such file or directory, check the path"
    ]


def test_folder_is_a_problem(tmp_path: Path) -> None:
    """So is anything else that can't be opened as a file."""
    assert problems_of(tmp_path) == [
        f"{tmp_path}:1: (document): can't be read, Is a directory, check the path"
    ]


def test_file_over_the_limit_is_a_problem(tmp_path: Path) -> None:
    """Not more than the limit is read."""
    path = tmp_path / "large.yaml"
    path.write_bytes(b"#" * (MAX_DOCUMENT_BYTES + 1))

    assert len(problems_of(path)) == 1


def test_reference_minimal_example_is_accepted() -> None:
    """The smallest document of the reference loads as it is."""
    snapshot = load_snapshot(reference_dir() / "examples" / "minimal.yaml", {})

    assert [cluster.name for cluster in snapshot.clusters] == ["chat"]
    assert snapshot.clusters[0].upstream_model == "Qwen/Qwen3-8B"
    assert snapshot.settings.default_model == "chat"


@pytest.mark.parametrize("name", ["mid-size.yaml", "algorithm-looper.yaml"])
def test_reference_example_beyond_this_version_is_refused_plainly(name: str) -> None:
    """Every key of it is known: all it is refused for is what this version does not serve."""
    problems = problems_of(reference_dir() / "examples" / name)

    # Its users' keys need a listener that trusts somebody, which its other mode does not.
    reasons = ("not served by this version", "set identity.trust_headers on a listener")
    assert problems
    assert all(any(reason in problem for reason in reasons) for problem in problems)
