"""A snapshot on its way between processes."""

import attrs
import msgspec
import pytest

from vsr.config.parts import parts_of, reading
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.resources.snapshot import Snapshot
from vsr.slices import at_once

DOCUMENT = b"""\
version: v0.3
listeners: [{name: public, address: 127.0.0.1, port: 8899}]
providers:
  defaults: {model: small}
  models: [{name: small, backend_refs: [{endpoint: "127.0.0.1:1"}]}]
routing:
  signals: {keywords: [{name: code, operator: OR, keywords: [python]}]}
  decisions: [{name: code, rules: {type: keyword, name: code}, modelRefs: [{model: small}]}]
"""


@pytest.fixture
def snapshot() -> Snapshot:
    """Return what a document comes to."""
    return check_bytes(DOCUMENT, {}, Report("parts")).snapshot


def test_snapshot_is_the_same_behind_its_parts(snapshot: Snapshot) -> None:
    """Secrets and order included, and those of more resources than one part holds."""
    many = tuple(attrs.evolve(snapshot.clusters[0], name=f"model-{at}") for at in range(100))
    full = msgspec.structs.replace(snapshot, clusters=many)

    for each in (snapshot, full, Snapshot("none")):
        assert at_once(reading(parts_of(each))) == each


def test_snapshot_is_read_part_by_part(snapshot: Snapshot) -> None:
    """Whoever reads it can serve in between."""
    parts = list(parts_of(snapshot))

    slices = sum(1 for _ in reading(parts))

    assert slices == len(parts) > 1
