"""The page for operators: which files it has, and under which policy a browser runs them."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import PurePosixPath

from vsr.admin.answer import Answer
from vsr.headers import HeaderLine

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No text of the API can become markup, whatever a script does with it.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_LINES: tuple[HeaderLine, ...] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
_INDEX = "index.html"


def page_files() -> Mapping[str, Answer]:
    """Return the page's files by path; blocks while they are read.

    They hold nothing of this Router, so that nobody needs a permission for them: what the page
    shows it asks of the API, with the token that its reader has.
    """
    found: dict[str, Answer] = {}
    for file in files("vsr.admin").joinpath("page").iterdir():
        content_type = _TYPES.get(PurePosixPath(file.name).suffix)
        if content_type is not None:
            path = "/" if file.name == _INDEX else f"/page/{file.name}"
            found[path] = Answer(200, file.read_bytes(), content_type, _LINES)
    return found
