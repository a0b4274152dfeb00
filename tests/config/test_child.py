"""Compiling a document in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
import trio

from vsr.config.attempt import Code, Stage
from vsr.config.child import ChildCompiler, ChildInspector, Examined
from vsr.config.history import Document
from vsr.config.inspecting import Subject
from vsr.config.inspection import Inspect, Mode
from vsr.config.lifecycle import Compiled, Refused, Update
from vsr.config.origin import Origin
from vsr.config.report import Report
from vsr.config.source import check_bytes, check_file

CHILD = ChildCompiler("vsr.commands.compile_child")
TEXT = b"""
listeners: [{name: main, address: 127.0.0.1, port: 8899, api_keys: ["${KEY}"]}]
providers:
  models: [{name: small, backend_refs: [{endpoint: "127.0.0.1:1"}]}]
routing:
  decisions:
    - {name: all, rules: {operator: AND, conditions: []}, modelRefs: [{model: small}]}
"""
GRAPH = b"""
  graphs: {own: {file: own.yaml}}
"""


async def compiled(text: bytes, file: Path | None = None, **included: bytes) -> Compiled:
    """Return what a document comes to."""
    update = Update(Document(text, included), Origin("file"), file)
    with trio.fail_after(60):
        return await CHILD.compile(update, lambda _: None)


async def refused(text: bytes, file: Path | None = None) -> list[tuple[Stage, Code, str, int]]:
    """Return why a document is refused."""
    with pytest.raises(Refused) as caught:
        await compiled(text, file)
    return [(each.stage, each.code, each.path, each.line) for each in caught.value.reasons]


async def test_snapshot_is_the_one_that_compiling_here_gives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of it, the environment's values too."""
    monkeypatch.setenv("KEY", "from-the-environment")
    models = b"".join(
        b"    - {name: m%d, backend_refs: [{endpoint: '127.0.0.1:%d'}]}\n" % (at, at + 1)
        for at in range(100)
    )
    text = TEXT.replace(b"models: [{", b"models:\n" + models + b"    - {").replace(
        b"}]}]\n", b"}]}\n"
    )

    result = await compiled(text)

    here = check_bytes(text, {"KEY": "from-the-environment"}, Report("document")).snapshot
    assert result.snapshot == here
    assert len(result.snapshot.clusters) == 101
    assert result.document == Document(text)


async def test_every_reason_comes_back_with_its_stage_and_place(tmp_path: Path) -> None:
    """As the author's file has it."""
    file = tmp_path / "config.yaml"

    assert await refused(b"a: [1\nb: ]\n", file) == [(Stage.PARSE, Code.INVALID_DOCUMENT, "", 2)]
    assert await refused(TEXT, file) == [
        (Stage.COMPILE, Code.INVALID_RESOURCE, "listeners[0].api_keys[0]", 2)
    ]
    twice = TEXT.replace(b"${KEY}", b"k").replace(
        b"models: [{name: small,", b"models: [{name: small, backend_refs: []}, {name: small,"
    )
    found = await refused(twice.replace(b"{model: small}", b"{model: other}"), file)
    assert (Stage.COMPILE, Code.DUPLICATE_NAME, "providers.models[1].name", 4) in found
    reference = "routing.decisions[0].modelRefs[0].model"
    assert (Stage.COMPILE, Code.UNRESOLVED_REFERENCE, reference, 7) in found


async def test_what_this_version_cannot_serve_is_unsupported() -> None:
    """The document is valid, and another version or mode may serve it."""
    text = TEXT.replace(b"${KEY}", b"k") + b"global: {router: {streamed_body: {enabled: true}}}\n"

    ((stage, code, path, _),) = await refused(text)

    assert (stage, code) == (Stage.VALIDATE, Code.UNSUPPORTED)
    assert path.startswith("global.router.streamed_body")


async def test_included_graph_comes_back_with_the_document(tmp_path: Path) -> None:
    """Its bytes are in the hash; a document that brings them is compiled without the files."""
    file = tmp_path / "config.yaml"
    graph = b"steps: [{id: said, type: call, model: small}, {type: respond, from: $said}]\n"
    (tmp_path / "own.yaml").write_bytes(graph)
    text = TEXT.replace(b"${KEY}", b"k") + GRAPH
    file.write_bytes(text)

    result = await compiled(text, file)

    assert result.document == Document(text, {"own.yaml": graph})
    assert result.snapshot.hash == check_file(file, {}).snapshot.hash
    (tmp_path / "own.yaml").unlink()
    assert (await refused(text, file))[0][1] is Code.ARTIFACT_UNAVAILABLE
    again = await compiled(text, file, **{"own.yaml": graph})
    assert again.snapshot.hash == result.snapshot.hash


async def test_fault_inside_of_a_graph_is_told(tmp_path: Path) -> None:
    """With the graph's own file and line, though only the engine can find it."""
    file = tmp_path / "config.yaml"
    (tmp_path / "own.yaml").write_bytes(
        b"steps:\n"
        b"  - {id: said, type: call, model: small, zzz: 1}\n"
        b"  - {type: respond, from: $said}\n"
    )

    with pytest.raises(Refused) as caught:
        await compiled(TEXT.replace(b"${KEY}", b"k") + GRAPH, file)

    files = {(each.file, each.line) for each in caught.value.reasons}
    assert (str(tmp_path / "own.yaml"), 2) in files


async def test_child_that_dies_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Router serves on."""
    (tmp_path / "dies.py").write_text("import sys; sys.exit(7)\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(sys.path)}")

    with pytest.raises(Refused) as caught:
        await ChildCompiler("dies").compile(Update(Document(TEXT), Origin("file")), lambda _: None)

    (reason,) = caught.value.reasons
    assert reason.code is Code.BUILD_FAILED
    assert reason.message == "the process that compiles it ended with status 7"


async def test_package_that_prints_does_not_spoil_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither before the child's own code runs nor while it compiles."""
    (tmp_path / "prints.py").write_text(
        "import sys\n"
        "print('loaded')\n"
        "from vsr.config.compiling import run_child\n"
        "run_child(lambda snapshot: print('checking', file=sys.stdout))\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(sys.path)}")
    text = TEXT.replace(b"${KEY}", b"k")

    result = await ChildCompiler("prints").compile(
        Update(Document(text), Origin("file")), lambda _: None
    )

    assert result.snapshot == check_bytes(text, {}, Report("document")).snapshot


@pytest.mark.parametrize(
    "says",
    ["", "nonsense", "\\0vsr answers\\0", "\\0vsr answers\\0\\0\\0\\0\\x05{}"],
    ids=["nothing", "nonsense", "no parts", "cut off"],
)
async def test_answer_that_cannot_be_read_is_a_refusal(
    says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an update under a running Router."""
    (tmp_path / "says.py").write_text(f"print('{says}', end='')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(sys.path)}")

    with pytest.raises(Refused) as caught:
        await ChildCompiler("says").compile(Update(Document(TEXT), Origin("file")), lambda _: None)

    (reason,) = caught.value.reasons
    assert reason.code is Code.BUILD_FAILED
    assert "Then restart it" in reason.message


async def test_process_that_cannot_be_started_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As without descriptors, or without the interpreter that an update took away."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    ((stage, code, _, _),) = await refused(TEXT)

    assert (stage, code) == (Stage.COMPILE, Code.BUILD_FAILED)


async def test_modules_of_the_working_directory_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write there may not write the Router's code."""
    (tmp_path / "msgspec.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)

    result = await compiled(TEXT.replace(b"${KEY}", b"k"))

    assert len(result.snapshot.clusters) == 1


async def test_child_of_nobody_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, when the one who waits is cancelled."""
    (tmp_path / "hangs.py").write_text("import time; time.sleep(60)\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(sys.path)}")

    with trio.fail_after(10), trio.move_on_after(0.3) as scope:
        await ChildCompiler("hangs").compile(Update(Document(TEXT), Origin("file")), lambda _: None)

    assert scope.cancelled_caught


async def examined(question: Inspect) -> Examined:
    """Return what becomes of a text, and what it comes to."""
    with trio.fail_after(60):
        return await ChildInspector(CHILD.module).inspect(question, compiles=True)


async def test_text_is_told_of_and_compiled_by_one_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As this process would do both, with its environment."""
    monkeypatch.setenv("KEY", "from-the-environment")
    question = Inspect(b"routing: {decisions: []}", Mode.MERGE, TEXT, str(tmp_path / "c.yaml"))

    found = await examined(question)

    here, _ = Subject({"KEY": "from-the-environment"}).of(question)
    assert found.inspected == here
    assert found.compiled is not None
    assert found.compiled.document == Document(here.candidate)
    alone = await compiled(here.candidate, tmp_path / "c.yaml")
    assert found.compiled.snapshot == alone.snapshot


async def test_text_that_is_not_valid_is_not_compiled() -> None:
    """Its reasons are told once."""
    found = await examined(Inspect(b"a: ["))

    assert found.inspected.reasons
    assert (found.compiled, found.reasons) == (None, ())


async def test_text_that_is_not_served_is_told_of_all_the_same() -> None:
    """Why not, beside what it says."""
    text = TEXT.replace(b"${KEY}", b"k") + b"global: {router: {streamed_body: {enabled: true}}}\n"

    found = await examined(Inspect(text, wants_yaml=True))

    assert "streamed_body" in found.inspected.yaml
    assert found.compiled is None
    assert [each.code for each in found.reasons] == [Code.UNSUPPORTED]


@pytest.mark.parametrize("compiles", [True, False])
async def test_inspector_that_fails_is_a_reason(*, compiles: bool) -> None:
    """And no failure of whoever asks."""
    found = await ChildInspector("vsr.nowhere").inspect(Inspect(TEXT), compiles=compiles)

    assert [reason.code for reason in found.inspected.reasons] == [Code.BUILD_FAILED]


def test_child_needs_no_loop() -> None:
    """Loading Trio would take a third of its time."""
    script = "import sys, vsr.commands.compile_child; sys.exit('trio' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", script], check=False)  # noqa: S603  # see above

    assert done.returncode == 0
