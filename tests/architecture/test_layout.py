"""The shape of the repository: import contracts, sizes, folders, what each extension must have."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import attrs
import pytest

from vsr.registry import Extension, Place, Registry

ROOT = Path(__file__).parents[2]
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50

FOLDERS = {"vsr", "graphs", "tests", "fixtures", "container", "kubernetes", "bench", "docs"}

PAGES = {
    "vsr.graph.nodes.builtin": "docs/graphs-reference.md",
    "vsr.graph.aggregate.builtin": "docs/graphs-reference.md",
    "vsr.graph.conditions.builtin": "docs/graphs-reference.md",
    "vsr.graph.transform.builtin": "docs/graphs-reference.md",
    "vsr.decision.signals.builtin": "docs/configuration.md",
    "vsr.decision.selection.builtin": "docs/configuration.md",
    "vsr.engine.plugins.builtin": "docs/plugins.md",
}
"""Where the extensions of each built-in list are described, each under its name in a table or a
heading."""

ASYNCIO_CLIENTS = ("tests/e2e/", "bench/")
"""Where other people's asyncio programs are driven or stood in for."""


@attrs.frozen
class Module:
    """One parsed source file."""

    path: str
    """From the root, with slashes."""
    text: str = attrs.field(repr=False)
    tree: ast.Module = attrs.field(repr=False)


def _modules(*folders: str) -> list[Module]:
    modules = []
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            path = file.relative_to(ROOT).as_posix()
            modules.append(Module(path, text, ast.parse(text, path)))
    return modules


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    """Every module that we write."""
    return _modules("vsr", "tests", "bench")


def test_import_contracts_are_kept() -> None:
    """Layers, protected packages and the sans-IO rule hold; pyproject.toml states them."""
    program = Path(sys.executable).parent / "lint-imports"

    result = subprocess.run(  # noqa: S603  # our own tool
        [program, "--no-cache", "--no-logo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stdout + result.stderr


def test_files_are_short(modules: list[Module]) -> None:
    """A file over 400 lines holds more than one concept."""
    sizes = {module.path: module.text.count("\n") for module in modules}

    too_long = {path: size for path, size in sizes.items() if size > MAX_FILE_LINES}

    assert too_long == {}


def test_functions_are_short(modules: list[Module]) -> None:
    """A function over 50 lines does more than one thing."""
    sizes = {
        f"{module.path}:{function.lineno} {function.name}": _lines_of(function)
        for module in modules
        for function in _functions(module.tree)
    }

    too_long = {name: size for name, size in sizes.items() if size > MAX_FUNCTION_LINES}

    assert too_long == {}


def test_modules_say_what_they_own(modules: list[Module]) -> None:
    """Every module opens with its sentence of ownership."""
    silent = [module.path for module in modules if not ast.get_docstring(module.tree)]

    assert silent == []


def test_package_files_hold_a_docstring_only(modules: list[Module]) -> None:
    """A re-exporting `__init__.py` would pull Trio into pure modules."""
    inits = [module for module in modules if module.path.endswith("/__init__.py")]

    full = [module.path for module in inits if len(module.tree.body) != 1]

    assert inits
    assert full == []


def test_packages_have_an_init_file() -> None:
    """A folder of modules without `__init__.py` escapes the import contracts."""
    folders = {file.parent for file in (ROOT / "vsr").rglob("*.py")}

    bare = [str(folder) for folder in folders if not (folder / "__init__.py").is_file()]

    assert bare == []


def test_imports_are_absolute_and_of_trio(modules: list[Module]) -> None:
    """Two event loops don't mix; a mock hides what a fake would have to state."""
    found = [
        f"{module.path}: {name}"
        for module in modules
        for name in _imported(module.tree)
        if name.startswith((".", "unittest.mock"))
        or (name.split(".")[0] == "asyncio" and not module.path.startswith(ASYNCIO_CLIENTS))
    ]

    assert found == []


def test_top_level_folders_are_the_known_ones() -> None:
    """A new concept gets a row in the layout, not a folder of its own."""
    patterns = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    ignored = [pattern.rstrip("/") for pattern in patterns]

    folders = {
        entry.name
        for entry in ROOT.iterdir()
        if entry.is_dir() and not entry.name.startswith(".")
        if not any(fnmatch(entry.name, pattern) for pattern in ignored)
    }

    assert folders == FOLDERS


def test_architecture_page_lists_every_package() -> None:
    """The page of the layout names what exists, and nothing else."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = {cell for row in _rows(page) for cell in _code_spans(row)}
    entries = {file.name for file in (ROOT / "vsr").glob("*.py")} - {"__init__.py"}
    entries |= {f"{file.parent.name}/" for file in (ROOT / "vsr").glob("*/__init__.py")}

    assert rows == entries


@pytest.mark.parametrize("name", sorted(PAGES))
def test_extension_has_a_test_and_a_place_in_the_docs(name: str) -> None:
    """An extension nobody tests or describes does not ship."""
    rows = _rows((ROOT / PAGES[name]).read_text(encoding="utf-8"))
    extensions = _extensions(name)

    missing = []
    for extension in extensions:
        package, _, module = extension.config.__module__.removeprefix("vsr.").rpartition(".")
        test = Path("tests", *package.split("."), f"test_{module}.py")
        if not (ROOT / test).is_file():
            missing.append(f"{extension.name}: {test}")
        if not any(_code_spans(row)[:1] == [extension.name] for row in rows):
            missing.append(f"{extension.name}: a table row or heading in {PAGES[name]}")

    assert extensions
    assert missing == []


def test_every_builtin_list_has_a_page() -> None:
    """A new kind of extension says where its extensions are described."""
    lists = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for file in (ROOT / "vsr").rglob("builtin.py")
    }

    assert lists == set(PAGES)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _extensions(builtin: str) -> list[Extension[object]]:
    values = vars(importlib.import_module(builtin)).values()
    lists = [value for value in values if isinstance(value, tuple)]
    entries = [each for value in lists for each in value if isinstance(each, Extension | Place)]
    return list(Registry[object](builtin, entries))


def _rows(page: str) -> list[str]:
    """Return the headings and the first cells of table rows."""
    lines = page.splitlines()
    return [line.split("|")[1] if line[:1] == "|" else line for line in lines if line[:1] in "|#"]


def _code_spans(text: str) -> list[str]:
    return text.split("`")[1::2]
