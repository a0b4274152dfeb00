"""From what commands are given to a graph and a scenario that are ready to run."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml

from vsr.dryrun.reading import read_scenario_file
from vsr.dryrun.scenario import RequestScript, Scenario
from vsr.dryrun.subject import Subject, Wanted, find_subject, is_file
from vsr.engine.shipped import BUILTIN
from vsr.errors import ConfigRejected, Problem

SCENARIO_END = ".scenario.yaml"


class Source(msgspec.Struct, frozen=True):
    """What a command is given."""

    graph: str
    """A name, a file of a graph, or a scenario file."""
    config: Path | None = None
    scenario_file: Path | None = None
    request: Path | None = None
    params: Mapping[str, object] = msgspec.field(default_factory=dict)


def prepare(
    source: Source, environ: Mapping[str, str], *, is_dry: bool = True
) -> tuple[Subject, Scenario]:
    """Return the graph and the scenario.

    Args:
        source: what the command is given.
        environ: resolves the document's references.
        is_dry: whether nobody will be called, so that keys which are not set need not be known.

    Raises:
        ConfigRejected: something of it is faulty; every problem of it is told.
    """
    scenario, wanted = Scenario(), Wanted(source.graph, source.config, source.params)
    if source.graph.endswith(SCENARIO_END):
        file = Path(source.graph)
        scenario = read_scenario_file(file)
        wanted = msgspec.structs.replace(_beside(scenario, file), params=source.params)
        if source.config is not None:
            wanted = msgspec.structs.replace(wanted, config=source.config)
    elif source.scenario_file is not None:
        scenario = read_scenario_file(source.scenario_file)
        wanted = msgspec.structs.replace(wanted, config=source.config or scenario.config)
    if source.request is not None:
        scenario = msgspec.structs.replace(scenario, request=read_request(source.request))
    find_graph = BUILTIN.find_graph
    return find_subject(wanted, scenario, find_graph, environ, may_assume=is_dry), scenario


def prepare_scenario(file: Path, environ: Mapping[str, str]) -> tuple[Subject, Scenario]:
    """Return the graph that a scenario file is about, and the scenario.

    Raises:
        ConfigRejected: something of it is faulty.
    """
    return prepare(Source(str(file)), environ)


def read_request(file: Path) -> RequestScript:
    """Return a client's request from a file.

    Raises:
        ConfigRejected: it cannot be read, or holds no mapping.
    """
    try:
        body = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        body = None
    if not isinstance(body, dict):
        what = "must be a chat completion's body, as JSON or YAML"
        raise ConfigRejected([Problem("", what, mend="check the path", file=str(file), line=1)])
    return RequestScript({name: value for name, value in body.items() if name != "model"})


def _beside(scenario: Scenario, file: Path) -> Wanted:
    """Return the graph that a scenario names, or the one beside it that has its name."""
    graph = scenario.graph
    if graph is None:
        graph = str(file.parent / f"{file.name.partition('.')[0]}.yaml")
    elif is_file(graph):
        graph = str(file.parent / graph)
    return Wanted(graph, scenario.config)
