"""Extensions of graphs that installed packages add."""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.conformance.looper_reply import Response, reply_of
from tests.conformance.looper_server import ScriptedServer, SeenCall
from tests.fakes.router import as_snapshot, start_router
from vsr.engine.installed import with_installed
from vsr.engine.recipe_graphs import RecipeGraphs
from vsr.engine.shipped import BUILTIN
from vsr.errors import ConfigRejected
from vsr.graph.compile import Registries
from vsr.network.memory import MemoryNetwork

EXAMPLE = Path(__file__).parents[1] / "plugins" / "example_node"
SHIPPED = BUILTIN.shipped_registries()
DOCUMENT = """
listeners: [{{name: main, address: 127.0.0.1, port: 8899}}]
providers:
  models:
    - {{name: small, backend_refs: [{{endpoint: "127.0.0.1:{port}"}}]}}
routing:
  graphs:
    facts:
      steps:
        - {{id: facts, type: json_reply, model: small, prompt: As JSON., rounds: 3, timeout: 5s}}
        - {{id: text, type: transform, transformer: prompt, template: "{{{{ facts.city }}}}"}}
        - {{type: respond, from: $text.text}}
  decisions:
    - name: all
      rules: {{operator: AND, conditions: []}}
      algorithm: {{type: graph, graph: facts}}
"""

Install = Callable[[str, str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return what puts the metadata of a package on the path: its name, entry points, code."""

    def put(name: str, points: str, code: str = "") -> None:
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(points)
        if code:
            (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)

    with_installed.cache_clear()
    yield put
    with_installed.cache_clear()


@pytest.fixture
def example(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the example package as its `pyproject.toml` describes it."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    ]
    install("example_node", "\n".join(lines), "")
    monkeypatch.syspath_prepend(EXAMPLE)


def refusal(shipped: Registries = SHIPPED) -> str:
    """Return why what is installed is refused."""
    with pytest.raises(ConfigRejected) as refused:
        with_installed(shipped)
    return str(refused.value)


def test_nothing_installed_changes_nothing(install: Install) -> None:
    """The very registries that ship."""
    install("other", "[console_scripts]\nother = other:main\n", "")

    assert with_installed(SHIPPED) is SHIPPED


@pytest.mark.usefixtures("example")
def test_example_adds_its_node() -> None:
    """Beside all that ship."""
    found = with_installed(SHIPPED)

    assert set(found.nodes.names()) - set(SHIPPED.nodes.names()) == {"json_reply"}
    assert found.aggregates.names() == SHIPPED.aggregates.names()


@pytest.mark.usefixtures("example")
def test_example_tells_its_worst_case() -> None:
    """Three rounds of five seconds."""
    snapshot = as_snapshot(DOCUMENT.format(port=1))
    (program,) = snapshot.programs
    graphs = RecipeGraphs(program, snapshot.clusters, BUILTIN)

    graph = graphs.decided(program.decisions[0])

    assert graphs.problems == []
    assert graph is not None
    worst = graphs.worst_case(program.decisions[0], graph)
    assert (worst.calls, worst.parallel, worst.time_s) == (3, 1, 15)


@pytest.mark.usefixtures("example")
async def test_example_runs(autojump_clock: trio.testing.MockClock) -> None:
    """The second answer is an object; the first one was followed by a reminder."""
    del autojump_clock
    answers = ["no idea", '{"city": "Rome"}']

    def answer(call: SeenCall) -> Response:
        return reply_of({"content": answers[len(server.calls) - 1]}, call.body["model"])

    network = MemoryNetwork()
    server = ScriptedServer(network, answer)
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        snapshot = as_snapshot(DOCUMENT.format(port=server.port))
        router = await start_router(nursery, network, snapshot)
        body = b'{"model":"auto","messages":[{"role":"user","content":"Where?"}]}'

        got = await router.ask(body)

        nursery.cancel_scope.cancel()
    assert got.status == 200
    assert b'"Rome"' in got.body
    said = [[each["content"] for each in call.body["messages"]] for call in server.calls]
    assert said[0] == ["Where?", "As JSON."]
    assert said[1] == [*said[0], "Answer with one JSON object and nothing else."]


EXTENSION = """
import attrs
from vsr.registry import Extension

@attrs.frozen
class Thing:
    async def run(self, ctx): ...
    def __call__(self, *inputs): ...

ONE = Extension(name="{name}", config=Thing)
TWO = ONE, Extension(name="second", config=Thing)
PLAIN = Extension(name="plain", config=int)
"""


@pytest.mark.parametrize(
    ("group", "kind"),
    [("aggregates", "aggregates"), ("transformers", "transformers"), ("conditions", "conditions")],
)
def test_one_entry_point_may_give_several(install: Install, group: str, kind: str) -> None:
    """A tuple of extensions; every group has its own kind."""
    install("several", f"[vsr.{group}]\nthings = several:TWO\n", EXTENSION.format(name="first"))

    names = getattr(with_installed(SHIPPED), kind).names()

    assert {"first", "second"} <= set(names)


def test_name_that_ships_is_refused(install: Install) -> None:
    """Nobody may replace a node type by installing a package."""
    install("taker", "[vsr.nodes]\nx = taker:ONE\n", EXTENSION.format(name="call"))

    assert refusal() == (
        "taker 1.0, entry point 'x' of vsr.nodes: gives the node type 'call', which is there "
        "already, it comes from the Router itself, remove one of the packages"
    )


def test_name_of_two_packages_is_refused(install: Install) -> None:
    """Both are named."""
    install("first", "[vsr.nodes]\nx = first:ONE\n", EXTENSION.format(name="same"))
    install("later", "[vsr.nodes]\nx = later:ONE\n", EXTENSION.format(name="same"))

    said = refusal()

    assert said.startswith("later 1.0, entry point 'x' of vsr.nodes: gives the node type 'same'")
    assert "it comes from first 1.0" in said


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("broken:NOTHING", "broken:NOTHING raises AttributeError: "),
        ("missing_module:X", "missing_module:X raises ModuleNotFoundError: "),
        ("broken:Thing", "broken:Thing holds type, and not an Extension"),
        ("broken:PLAIN", "int is no attrs class with a method run"),
    ],
)
def test_broken_package_is_refused(install: Install, value: str, why: str) -> None:
    """With its name and what is wrong; every one of them at once."""
    points = f"[vsr.nodes]\na = {value}\n[vsr.aggregates]\nb = broken:NOTHING\n"
    install("broken", points, EXTENSION.format(name="x"))

    first, second = refusal().splitlines()

    assert first.startswith(f"broken 1.0, entry point 'a' of vsr.nodes: cannot be used, {why}")
    assert second.startswith("broken 1.0, entry point 'b' of vsr.aggregates: cannot be used")


def test_documents_without_graphs_do_not_look(install: Install) -> None:
    """Looking takes milliseconds, and a broken package harms nobody who needs none."""
    install("broken", "[vsr.nodes]\na = broken:NOTHING\n", "")
    text = DOCUMENT.format(port=1).replace("type: json_reply", "type: call")
    head, _, _ = text.partition("routing:")
    plain = as_snapshot(f"{head}routing: {{decisions: []}}")
    graphs = RecipeGraphs(plain.programs[0], plain.clusters, BUILTIN)

    graphs.open_unused()

    assert graphs.problems == []
    with pytest.raises(ConfigRejected):
        graphs.opened(as_snapshot(text).programs[0].graphs[0])
