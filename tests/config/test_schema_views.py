"""The JSON schema of the document in parts."""

import json

import pytest

from tests.reference_dir import reference_dir
from vsr.config.json_schema import json_schema
from vsr.config.schema_views import Kind, NoSuchPart, SchemaViews, View, Wanted

VIEWS = SchemaViews(json_schema())


def test_index_has_what_the_reference_has() -> None:
    """Signals, plugins, projections and sections by the same names; algorithms and one of ours."""
    theirs = json.loads((reference_dir() / "router-config-v0.3.schema.json").read_text())[
        "x-vllm-sr"
    ]

    ours = VIEWS.of(Wanted())

    assert ours["contract_version"] == theirs["contract_version"]
    assert ours["schema_endpoint"] == theirs["schema_endpoint"]
    for catalog, keys in {
        "signals": ("type", "collection", "schema_ref"),
        "plugins": ("type", "schema_ref"),
        "projections": ("collection", "schema_ref"),
    }.items():
        assert _rows(ours[catalog], keys) == _rows(theirs[catalog], keys), catalog
    types = ("type",)
    assert _rows(ours["algorithms"], types) == {*_rows(theirs["algorithms"], types), ("graph",)}
    mine, known = (_rows(each["global_sections"], ("path",)) for each in (ours, theirs))
    assert known <= mine


def _rows(entries: object, keys: tuple[str, ...]) -> set[tuple[str, ...]]:
    assert isinstance(entries, list)
    return {tuple(str(each.get(key)) for key in keys) for each in entries}


def test_index_leads_to_every_part() -> None:
    """Each entry of a catalog and each section can be asked for."""
    index = VIEWS.of(Wanted())

    for kind in Kind:
        key = {Kind.PROJECTION: "collection", Kind.GLOBAL_SECTION: "key"}.get(kind, "type")
        for (name,) in _rows(index[f"{kind}s"], (key,)):
            assert VIEWS.of(Wanted(View.CATALOG, kind=kind, name=name))["schema"] is not None
    for (path,) in _rows(index["sections"], ("path",)):
        assert VIEWS.of(Wanted(View.SECTION, path))["path"] == path
    assert VIEWS.of(Wanted(View.FULL)) == json_schema()


@pytest.mark.parametrize(
    ("path", "member"),
    [
        ("providers.models", "type"),
        ("providers.models.backend_refs", "type"),
        ("providers.models[0].backend_refs[].api_key", "type"),
        ("global.services.management_api", "properties"),
        ("global.services.management_api.auth.tokens", "items"),
    ],
)
def test_section_is_found_by_its_path(path: str, member: str) -> None:
    """Items of lists need no index."""
    assert member in VIEWS.of(Wanted(View.SECTION, path))["schema"]  # type: ignore[operator]


def test_expanded_part_stands_alone() -> None:
    """Every definition that it refers to, and those that they refer to, comes along."""
    part = VIEWS.of(Wanted(View.SECTION, "routing", expanded=True))
    text = json.dumps(part)
    defined = part["$defs"]

    assert isinstance(defined, dict)
    wanted = {each.partition('"')[0] for each in text.split("#/$defs/")[1:]}
    assert wanted == set(defined)
    assert "$defs" not in VIEWS.of(Wanted(View.SECTION, "routing"))


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (Wanted(View.SECTION, "providers.modles"), "did you mean 'models'"),
        (Wanted(View.SECTION, "version.x"), "version has no key 'x'"),
        (Wanted(View.SECTION), "name the path"),
        (Wanted(View.CATALOG), "name the kind"),
        (Wanted(View.CATALOG, kind=Kind.PROJECTION, name="x"), "partitions"),
    ],
)
def test_part_that_is_not_there_is_told_with_what_is(wanted: Wanted, told: str) -> None:
    """So that nobody has to guess."""
    with pytest.raises(NoSuchPart, match=told):
        VIEWS.of(wanted)
