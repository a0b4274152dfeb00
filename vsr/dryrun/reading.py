"""From a scenario file to a scenario, or to every reason against it, with file and line."""

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import cast

from vsr.config.load import MAX_DOCUMENT_BYTES, load
from vsr.config.position import Path, Value
from vsr.config.report import Report
from vsr.config.structure import read_class
from vsr.dryrun.read_expectations import read_expectations
from vsr.dryrun.read_times import read_latency, read_time
from vsr.dryrun.read_turns import read_model
from vsr.dryrun.scenario import RequestScript, RuntimeScript, Scenario, VerifierScript
from vsr.dryrun.written import WrittenRequest, WrittenScenario

_AT: Path = ("routing", "graphs", "scenario")
"""Where the file stands for the loader: there `$name` is no reference to the environment."""


def read_scenario_file(file: FilePath) -> Scenario:
    """Return the scenario in `file`.

    Raises:
        ConfigRejected: with every problem that it has.
    """
    report = Report(str(file))
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        report.add((), "can't be read", error.strerror or "", "check the path", line=1)
        raise report.rejection() from None
    return read_scenario(data, str(file), folder=file.parent)


def read_scenario(data: bytes, file: str, *, folder: FilePath) -> Scenario:
    """Return the scenario in `data`.

    Args:
        data: YAML.
        file: names it in problems.
        folder: where the files that it names lie.

    Raises:
        ConfigRejected: with every problem that it has.
    """
    report = Report(file)
    report.mount(_AT, file)
    loaded = load(data, {}, report, at=_AT)
    if loaded is None:
        raise report.rejection()
    report.lines = loaded.lines.under(_AT)
    written = read_class(WrittenScenario, loaded.values, _AT, report)
    scenario = _scenario(written, folder, report)
    if report.has_problems():
        raise report.rejection()
    return scenario


def _scenario(written: WrittenScenario, folder: FilePath, report: Report) -> Scenario:
    runtime, leaves = written.runtime, (*_AT, "at", "client_leaves")
    return Scenario(
        graph=written.graph,
        config=None if written.config is None else folder / written.config,
        description=written.description,
        seed=written.seed,
        params=written.params,
        request=_request(written.request, report),
        models={
            name: read_model(model, (*_AT, "models", name), report)
            for name, model in written.models.items()
        },
        runtime=RuntimeScript(
            read_latency(cast("Value", runtime.latency), (*_AT, "runtime", "latency"), report),
            runtime.answers,
        ),
        verifiers={
            url: VerifierScript(
                read_latency(
                    cast("Value", each.latency), (*_AT, "verifiers", url, "latency"), report
                ),
                each.status,
                each.answer,
            )
            for url, each in written.verifiers.items()
        },
        client_leaves_s=read_time(cast("Value", written.at.client_leaves), leaves, report),
        expect=read_expectations(written.expect, (*_AT, "expect"), report),
    )


def _request(written: WrittenRequest | None, report: Report) -> RequestScript | None:
    if written is None:
        return None
    given = (written.question, written.messages, written.body)
    path = (*_AT, "request")
    if sum(each is not None for each in given) != 1 and not report.is_broken(path):
        report.add(path, "must have one of question, messages and body")
    body: dict[str, object] = dict(written.body or {})
    if written.messages is not None:
        body["messages"] = list(written.messages)
    elif written.question is not None:
        body["messages"] = [{"role": "user", "content": written.question}]
    if written.stream:
        body["stream"] = True
    return RequestScript(body, _headers(written.headers))


def _headers(written: Mapping[str, str]) -> Mapping[str, str]:
    return {name.lower(): value for name, value in written.items()}
