"""Checks of `global.router.egress`, and of the backends under it."""

from vsr.config.address import parse_address
from vsr.config.backend import resolve_backend
from vsr.config.document.root import Document
from vsr.config.document.router_settings import EgressPolicy
from vsr.config.egress import egress_of, parse_rule
from vsr.config.names import recipe_routings
from vsr.config.position import Path
from vsr.config.providers import PROVIDERS
from vsr.config.report import Report
from vsr.resources.egress import Egress

_PATH: Path = ("global", "router", "egress")


def check_egress(document: Document, report: Report) -> None:
    """Every entry is a rule, and no backend stands where they never let a connection go."""
    policy = document.global_.router.egress
    if policy is None:
        return
    if _check_entries(policy, report):
        egress = egress_of(document)
        assert egress is not None  # noqa: S101  # there is a policy
        _check_backends(document, egress, report)
        _check_verifiers(document, egress, report)


def _check_entries(policy: EgressPolicy, report: Report) -> bool:
    """Return whether all are good."""
    are_good = True
    for key, entries in (("allow", policy.allow or ()), ("deny", policy.deny)):
        for at, entry in enumerate(entries):
            path = (*_PATH, key, at)
            if report.is_broken(path):
                are_good = False
                continue
            try:
                parse_rule(entry)
            except ValueError as error:
                what = f"{report.quote(path)} is not an entry of a list of addresses"
                mend = "write it like 10.0.0.0/8, api.example.com:443 or *.example.com"
                report.add(path, what, str(error), mend)
                are_good = False
    return are_good and not report.is_broken(_PATH)


def _check_backends(document: Document, egress: Egress, report: Report) -> None:
    for at, model in enumerate(document.providers.models):
        for index, ref in enumerate(model.backend_refs):
            path: Path = ("providers", "models", at, "backend_refs", index)
            if ref.provider not in PROVIDERS:
                continue
            try:
                address = resolve_backend(ref).address
            except ValueError:
                continue  # the check of backends tells
            if egress.may_allow(address.host, address.port):
                continue
            for key in ("base_url", "endpoint"):
                if getattr(ref, key) is not None:
                    path = (*path, key)
            _report_place(path, report)


def _check_verifiers(document: Document, egress: Egress, report: Report) -> None:
    for root, routing in recipe_routings(document):
        for at, decision in enumerate(routing.decisions):
            block = None if decision.algorithm is None else decision.algorithm.confidence
            if block is None or block.verifier_server_url is None:
                continue
            try:
                address = parse_address(block.verifier_server_url, has_server_name=True)
            except ValueError:
                continue  # the check of algorithms tells
            if not egress.may_allow(address.host, address.port):
                path = (*root, "decisions", at, "algorithm", "confidence", "verifier_server_url")
                _report_place(path, report)


def _report_place(path: Path, report: Report) -> None:
    what = "is where no connection may go"
    why = "global.router.egress does not allow its host and port, or denies them"
    report.add(path, what, why, "correct the address, or the lists there")
