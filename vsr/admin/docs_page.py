"""The OpenAPI document as one page: no script, and nothing that comes from elsewhere."""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from html import escape

from vsr.admin.answer import Answer
from vsr.admin.openapi import openapi_document
from vsr.admin.routes import Route

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
code, summary b { font-family: ui-monospace, monospace; font-size: .9em; overflow-wrap: anywhere; }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; } summary span { opacity: .8; }
summary b { display: inline-block; min-width: 4.5em; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; }
td { border-top: 1px solid var(--soft); }
th { font-weight: 600; }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
_Json = Mapping[str, object]


def docs_page(routes: Iterable[Route], release: str) -> Answer:
    """Return the page."""
    document = openapi_document(routes, release, asks_token=False)
    body = "".join(_page(document, release)).encode()
    policy = (b"content-security-policy", _POLICY.encode())
    return Answer(200, body, b"text/html; charset=utf-8", (policy,))


def _page(document: _Json, release: str) -> Iterator[str]:
    title = f"Management API of vllm-sr {escape(release)}"
    yield f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
    yield "<meta name=viewport content='width=device-width, initial-scale=1'>"
    yield f"<style>{_STYLE}</style><h1>{title}</h1>"
    yield "<p>For programs: <a href=/openapi.json>/openapi.json</a></p>"
    yield "<h2>Endpoints</h2>"
    missing = []
    for path, methods in _object(document["paths"]).items():
        for method, operation in _object(methods).items():
            shown = "".join(_operation(method.upper(), path, _object(operation)))
            if _object(operation).get("x-available") is False:
                missing.append(shown)
            else:
                yield shown
    yield "<h2>Not in this version</h2>"
    yield from missing
    yield "<h2>Bodies</h2>"
    schemas = _object(_object(document["components"])["schemas"])
    for name, schema in sorted(schemas.items()):
        yield from _schema(name, _object(schema))
    yield "</html>\n"


def _operation(method: str, path: str, operation: _Json) -> Iterator[str]:
    summary = escape(str(operation["summary"]))
    yield f"<details><summary><b>{method}</b> <code>{escape(path)}</code> <span>{summary}</span>"
    permission = operation.get("x-permission")
    needs = f"needs <code>{escape(str(permission))}</code>" if permission else "open to all"
    yield f"</summary><p>Permission: {needs}</p>"
    parameters = [_object(each) for each in _items(operation.get("parameters"))]
    if parameters:
        rows = [
            (
                f"<code>{escape(str(each['name']))}</code> ({each['in']})",
                f"{_kind(_object(each['schema']))}: {escape(str(each['description']))}",
            )
            for each in parameters
        ]
        yield _table(("Parameter", ""), rows)
    if "requestBody" in operation:
        yield f"<p>Body: {_body(_object(operation['requestBody']))}</p>"
    answers = _object(operation["responses"])
    rows = [
        (status, f"{_body(_object(each))} {escape(str(_object(each)['description']))}")
        for status, each in sorted(answers.items())
    ]
    yield _table(("Status", ""), rows)
    yield "</details>"


def _schema(name: str, schema: _Json) -> Iterator[str]:
    yield f"<details id='{escape(name)}'><summary><code>{escape(name)}</code>"
    yield f" <span>{escape(str(schema.get('description', '')))}</span></summary>"
    required = _items(schema.get("required"))
    rows = [
        (
            f"<code>{escape(key)}</code>{'' if key in required else ' (optional)'}",
            _kind(_object(each)),
        )
        for key, each in _object(schema.get("properties", {})).items()
    ]
    yield _table(("Member", ""), rows) if rows else f"<p>{_kind(schema)}</p>"
    yield "</details>"


def _body(holder: _Json) -> str:
    content = _object(holder.get("content", {}))
    return ", ".join(
        f"{escape(kind)} {_kind(_object(_object(each)['schema']))}."
        for kind, each in content.items()
    )


def _kind(schema: _Json) -> str:
    """Return a type in words; those that have a name lead to it."""
    if reference := schema.get("$ref"):
        name = escape(str(reference).rpartition("/")[2])
        return f"<a href='#{name}'>{name}</a>"
    if choices := _items(schema.get("anyOf")):
        return " or ".join(_kind(_object(each)) for each in choices)
    if words := _items(schema.get("enum")):
        return "one of " + ", ".join(f"<code>{escape(str(each))}</code>" for each in words)
    if "items" in schema:
        return f"list of {_kind(_object(schema['items']))}"
    limits = [f"{key} {schema[key]}" for key in ("minimum", "maximum", "default") if key in schema]
    kind = escape(str(schema.get("type", "any value")))
    return f"{kind} ({', '.join(limits)})" if limits else kind


def _table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"<tr><td>{first}<td>{second}" for first, second in rows)
    return f"<table><tr><th>{head[0]}<th>{head[1]}{lines}</table>"


def _object(value: object) -> _Json:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []
