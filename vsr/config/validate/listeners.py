"""Checks of `listeners`."""

import ipaddress

from vsr.config.address import is_host, overlaps
from vsr.config.checks import check_names
from vsr.config.document.listeners import Listener, ListenerIdentity, ListenerTls
from vsr.config.position import Path
from vsr.config.report import Report


def check_listeners(listeners: tuple[Listener, ...], report: Report) -> None:
    """Each listener has a name and a socket of its own."""
    root: Path = ("listeners",)
    check_names((((*root, at, "name"), each.name) for at, each in enumerate(listeners)), report)
    for at, listener in enumerate(listeners):
        path = (*root, at)
        _check_listener(listener, path, report)
        for before, first in enumerate(listeners[:at]):
            if first.port == listener.port != 0 and overlaps(first.address, listener.address):
                why = f"listeners[{before}] listens there already"
                report.add((*path, "port"), "is taken", why, "give each listener a port of its own")
                break


def _check_listener(listener: Listener, path: Path, report: Report) -> None:
    if not is_host(listener.address):
        why = "it takes an IP address without brackets, or a host name"
        report.add((*path, "address"), "is missing or no address", why)
    if not listener.port:
        report.add((*path, "port"), "is missing", mend="write a number from 1 to 65535")
    _check_keys(listener.api_keys, (*path, "api_keys"), report)
    if listener.tls is not None:
        check_tls(listener.tls, (*path, "tls"), report)
    for at, model in enumerate(listener.models):
        if not model.strip():
            report.add((*path, "models", at), "is blank", mend="name a model or remove it")
    if listener.identity is not None:
        _check_identity(listener.identity, (*path, "identity"), report)


def _check_keys(api_keys: tuple[str, ...], path: Path, report: Report) -> None:
    for at, api_key in enumerate(api_keys):
        if not api_key or api_key != api_key.strip() or not api_key.isprintable():
            why = "it is empty, begins or ends with a blank, or holds a control character"
            mend = "check the environment variable if it comes from one"
            report.add((*path, at), "no client can send this key", why, mend)


def check_tls(tls: ListenerTls, path: Path, report: Report) -> None:
    """A certificate and its key are named."""
    for key, value in (("cert_file", tls.cert_file), ("key_file", tls.key_file)):
        if not value.strip():
            why = "TLS needs a certificate and its key"
            report.add((*path, key), "is missing or blank", why, "give a path")


def _check_identity(identity: ListenerIdentity, path: Path, report: Report) -> None:
    for at, network in enumerate(identity.trusted_peers):
        place = (*path, "trusted_peers", at)
        try:
            ipaddress.ip_network(network, strict=False)
        except ValueError:
            what = f"{report.quote(place)} is not a network"
            report.add(place, what, mend="write it like 10.0.0.0/8 or fd00::/8")
