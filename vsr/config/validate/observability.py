"""Checks of `global.services.observability`."""

from vsr.config.address import parse_address
from vsr.config.checks import check_text
from vsr.config.document.observability import ObservabilityConfig, TracingExporterConfig
from vsr.config.position import Path
from vsr.config.report import Report

_MEND = "write host:port for OTLP over gRPC, or a URL such as http://collector:4318"


def check_observability(config: ObservabilityConfig, path: Path, report: Report) -> None:
    """Report every fault of the tracing block."""
    tracing = config.tracing
    if tracing is None or not tracing.enabled:
        return
    place = (*path, "tracing")
    if tracing.exporter is not None:
        _check_exporter(tracing.exporter, (*place, "exporter"), report)
    if tracing.resource is not None:
        for key in ("service_name", "service_version", "deployment_environment"):
            check_text((*place, "resource", key), getattr(tracing.resource, key), report)
    sampling = tracing.sampling
    if sampling is not None and sampling.rate != 1 and sampling.type != "probabilistic":
        what = f"has no effect: {sampling.type} has no rate"
        report.warn((*place, "sampling", "rate"), what, "write type: probabilistic or remove it")


def _check_exporter(exporter: TracingExporterConfig, path: Path, report: Report) -> None:
    if exporter.type == "stdout":
        return
    place, text = (*path, "endpoint"), exporter.endpoint
    if "://" not in text and (not text.rpartition(":")[2].isdigit() or "/" in text):
        report.add(place, "is no address of a collector", "it takes host:port or a URL", _MEND)
        return
    try:
        parse_address(text)
    except ValueError as error:
        report.add(place, "is no address of a collector", str(error), _MEND)
