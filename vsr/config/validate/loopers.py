"""Checks of the blocks of algorithms that ask several models.

Source of the rules: the reference, which looks at some of them only when a request runs.
"""

import math
from collections.abc import Iterator
from urllib.parse import urlsplit

from vsr.config.address import parse_address
from vsr.config.checks import suggestion
from vsr.config.document.algorithms import Algorithm
from vsr.config.document.decisions import Decision
from vsr.config.document.looper_algorithms import (
    ConfidenceAlgorithmConfig,
    HybridWeightsConfig,
    ReMoMAlgorithmConfig,
)
from vsr.config.looper_panels import fewest_candidates, has_candidates
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.fusion import check_fusion
from vsr.config.validate.models import Models
from vsr.config.validate.workflows import check_workflows

_VERIFIER_KEYS = ("verifier_server_url", "verifier_timeout_seconds")
_SUM_TOLERANCE = 1e-9


def check_looper(
    decision: Decision, algorithm: Algorithm, path: Path, models: Models, report: Report
) -> None:
    """Report every fault of the algorithm's block.

    Args:
        decision: whose algorithm it is.
        algorithm: its type is one that asks several models.
        path: of the algorithm.
        models: the document's.
        report: gets the faults.
    """
    if decision.modelRefs and not has_candidates(decision):
        what = f"{algorithm.type} has too few candidates, one model answers in its place"
        mend = f"name at least {fewest_candidates(algorithm.type)} in modelRefs"
        report.warn((*path, "type"), what, mend)
    refs = {ref.model for ref in decision.modelRefs}
    if algorithm.confidence is not None:
        _check_confidence(algorithm.confidence, (*path, "confidence"), report)
    if algorithm.remom is not None:
        _check_remom(algorithm.remom, refs, (*path, "remom"), report)
    if algorithm.fusion is not None:
        check_fusion(decision, algorithm.fusion, (*path, "fusion"), models, report)
    if algorithm.type == "workflows":
        check_workflows(algorithm.workflows, refs, (*path, "workflows"), models, report)


def _check_confidence(block: ConfidenceAlgorithmConfig, path: Path, report: Report) -> None:
    if block.threshold is not None and not 0 <= block.threshold <= 1:
        report.add((*path, "threshold"), "must be from 0 to 1")
    if block.hybrid_weights is not None:
        _check_weights(block, block.hybrid_weights, (*path, "hybrid_weights"), report)
    if block.confidence_method == "automix_entailment":
        for what, why in _faults_of_url(block.verifier_server_url):
            mend = "write it like http://verifier:8000"
            report.add((*path, "verifier_server_url"), what, why, mend)
        return
    for key in _VERIFIER_KEYS:
        if getattr(block, key) is not None:
            why = "only automix_entailment asks a verifier"
            report.add((*path, key), "is out of place", why, "remove it")


def _check_weights(
    block: ConfidenceAlgorithmConfig, weights: HybridWeightsConfig, path: Path, report: Report
) -> None:
    if block.confidence_method != "hybrid":
        why = "only the method hybrid weighs two measures"
        report.add(path, "is out of place", why, "remove it")
    total = (weights.logprob_weight or 0.5) + (weights.margin_weight or 0.5)
    if not math.isclose(total, 1, rel_tol=0, abs_tol=_SUM_TOLERANCE):
        report.add(path, "must sum to 1", "0 counts as 0.5")


def _faults_of_url(url: str | None) -> Iterator[tuple[str, str]]:
    """Say why `url` can't be that of a verifier, at most once."""
    if not url:
        yield "is missing", "automix_entailment asks it"
        return
    if url != url.strip():
        yield "is no URL", "there are blanks around it"
        return
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        yield "is no URL", "its host or port can't be read"
        return
    if parts.scheme not in {"http", "https"} or not host:
        yield "is no URL", "it takes http or https and a host"
    elif "@" in parts.netloc:
        yield "holds a credential", "it takes none"
    elif "?" in url or "#" in url:
        yield "has a query or a fragment", "a path is added to it"
    else:
        yield from _faults_of_address(url)


def _faults_of_address(url: str) -> Iterator[tuple[str, str]]:
    """Say why nobody can connect to `url`, or ask it for its path."""
    try:
        parse_address(url, has_server_name=True)
    except ValueError as error:
        yield "is no URL", str(error)


def _check_remom(block: ReMoMAlgorithmConfig, refs: set[str], path: Path, report: Report) -> None:
    if not block.breadth_schedule:
        why = "it says how many calls each round makes"
        report.add((*path, "breadth_schedule"), "is missing or empty", why, "write [4, 2]")
    if block.synthesis_model is not None and block.synthesis_model not in refs:
        place = (*path, "synthesis_model")
        what = f"{report.quote(place)} is not one of modelRefs"
        report.add(place, what, mend=suggestion(block.synthesis_model, refs))
