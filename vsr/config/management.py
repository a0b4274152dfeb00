"""The management API in the document: what of it cannot be served, and its resource."""

from vsr.config.checks import suggestion
from vsr.config.document.root import Document
from vsr.config.document.services import ManagementAPIAuthConfig, ManagementAPIConfig
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.resources.listener import ListenerTls
from vsr.resources.management import ANY, PERMISSIONS, ROLES, Management, Token, is_loopback

PLACE: Path = ("global", "services", "management_api")


def check_management(document: Document, report: Report) -> None:
    """Report what would open the management API to whoever should not reach it."""
    api = document.global_.services.management_api
    if api is None:
        return
    auth = api.auth or ManagementAPIAuthConfig()
    # That remote exposure needs tokens is a rule of the document, wherever it is served.
    if not is_loopback(api.bind_address) and not api.remote_exposure:
        why = "others can reach the management API there"
        mend = "bind 127.0.0.1, or set remote_exposure: true and ask for tokens"
        report.add((*PLACE, "bind_address"), "is not of this host alone", why, mend)
    _check_tokens(auth, report)


def _check_tokens(auth: ManagementAPIAuthConfig, report: Report) -> None:
    roles = {name for name, _ in ROLES} | set(auth.roles)
    for at, token in enumerate(auth.tokens):
        place = (*PLACE, "auth", "tokens", at)
        if not token.env:
            report.add((*place, "env"), "is missing", "the token comes from it", "add it")
        if token.role not in roles:
            what = "is missing" if not token.role else f"{token.role!r} is no role"
            report.add((*place, "role"), what, mend=f"write one of {', '.join(sorted(roles))}")
    for role, words in auth.roles.items():
        for at, word in enumerate(words):
            if word not in PERMISSIONS and word != ANY:
                place = (*PLACE, "auth", "roles", role, at)
                report.warn(place, f"{word!r} permits nothing", suggestion(word, PERMISSIONS))


def compile_management(document: Document) -> Management:
    """Return the management API of a document that is served."""
    api = document.global_.services.management_api or ManagementAPIConfig()
    auth = api.auth or ManagementAPIAuthConfig()
    own = {name: frozenset(words) for name, words in auth.roles.items()}
    return Management(
        api.bind_address,
        api.port,
        is_remote=api.remote_exposure,
        asks_token=auth.mode == "bearer",
        tokens=tuple(Token(each.env or "", each.role or "") for each in auth.tokens),
        roles=tuple((dict(ROLES) | own).items()),
        tls=None if api.tls is None else ListenerTls(api.tls.cert_file, api.tls.key_file),
    )
