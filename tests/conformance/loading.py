"""A corpus on disk, and the engine that its document configures."""

from pathlib import Path

import attrs

from vsr.compose.generation import Parts, build_generation
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.network.memory import MemoryNetwork
from vsr.routing.engine import Engine
from vsr.routing.parity.body_diff import BodyRule
from vsr.routing.parity.corpus import Corpus, Judge, read_corpus

CASES = "cases.yaml"
CONFIG = "config.yaml"
EXPECTED = "expected.yaml"
EITHER_TEXT = frozenset({"auto-essay-anthropic-backend"})
"""Cases of the reference's corpus of which two texts are right. Source: the corpus's index."""


@attrs.frozen
class Folder:
    """A folder with the three files of a corpus."""

    path: Path
    corpus: Corpus
    rule: BodyRule = BodyRule.AS_JSON

    @classmethod
    def read(cls, path: Path, rule: BodyRule = BodyRule.AS_JSON) -> "Folder":
        """Return the corpus in `path`.

        Raises:
            OSError, ValueError: a file is missing or has another form.
        """
        cases = (path / CASES).read_text(encoding="utf-8")
        expected = (path / EXPECTED).read_text(encoding="utf-8")
        return cls(path, read_corpus(cases, expected), rule)

    def judge(self, name: str) -> Judge:
        """Return what the named case must come to."""
        return Judge(self.corpus.expected[name], self.rule, name in EITHER_TEXT)

    def engine(self) -> Engine:
        """Return a new engine that serves the corpus's document.

        Raises:
            ConfigRejected: the document is refused.
        """
        return engine_of(self.path / CONFIG)


def engine_of(document: Path) -> Engine:
    """Return an engine that serves `document`, as version 1.

    Raises:
        ConfigRejected: the document is refused.
    """
    checked = check_bytes(document.read_bytes(), {}, Report(document.name))
    return build_generation(Parts.default(MemoryNetwork()), checked.snapshot, 1).engine
