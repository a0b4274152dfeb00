"""The graphs that a command may name: those of a document, of a file, and those that ship."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from vsr.commands.graph_names import refuse
from vsr.config.library import graph_names
from vsr.config.source import Recipes, load_document, read_graph, recipes_of
from vsr.engine.recipe_graphs import RecipeGraphs
from vsr.engine.shipped import BUILTIN
from vsr.errors import ConfigRejected, Problem
from vsr.resources.graph import GraphSource
from vsr.resources.program import Decision, Program

_FILE_ENDS = (".yaml", ".yml")
_DEFAULT = "default"


class Found(msgspec.Struct, frozen=True):
    """One graph, and the recipe that it is looked at in."""

    source: GraphSource
    graphs: RecipeGraphs
    decisions: tuple[Decision, ...] = ()
    """That run it."""

    @property
    def recipe(self) -> str | None:
        """Return the recipe that declares it; None: a graph that ships, or a file's."""
        program = self.graphs.program
        return program.name if self.source in program.graphs else None

    @property
    def name(self) -> str:
        """Return the name that a command takes for it."""
        name = self.source.name
        return name if self.recipe in {None, _DEFAULT} else f"{self.recipe}:{name}"


class Library(msgspec.Struct, frozen=True):
    """What a command may choose from."""

    recipes: Recipes
    config: Path | None = None

    def own(self) -> Iterator[Found]:
        """Yield the graphs of the document, recipe by recipe."""
        for program in self.recipes.programs:
            for source in program.graphs:
                yield self._found(program, source)

    def looped(self) -> Iterator[Found]:
        """Yield the graphs that ship and that decisions of the document run."""
        for program in self.recipes.programs:
            calls = [decision.algorithm.graph for decision in program.decisions]
            names = {call.graph for call in calls if call is not None}
            for name in sorted(names - {source.name for source in program.graphs}):
                source = BUILTIN.find_graph(name) or GraphSource(name)
                yield self._found(program, source)

    def shipped(self) -> Iterator[Found]:
        """Yield the graphs that ship, by name."""
        for name in graph_names():
            source = BUILTIN.find_graph(name)
            if source is not None:
                yield self._found(self.recipes.programs[0], source)

    def find(self, name: str) -> Found:
        """Return the graph that is called `name`, with its recipe or without, or a file's.

        Raises:
            ConfigRejected: there is none, or its file is faulty.
        """
        if name.endswith(_FILE_ENDS):
            return self._found(self.recipes.programs[0], _read_file(Path(name)))
        recipe, _, short = name.rpartition(":")
        for found in self.own():
            if found.source.name == short and recipe in {"", found.graphs.program.name}:
                return found
        source = None if recipe else BUILTIN.find_graph(name)
        if source is not None:
            users = [each for each in self.recipes.programs if _users(each, source)]
            return self._found((users or self.recipes.programs)[0], source)
        known = ", ".join([each.name for each in self.own()] or graph_names())
        mend = "name a file or builtin/NAME, or give the document with --config"
        what = f"there is no graph {name!r}"
        problem = Problem("", what, f"known are {known}", mend, str(self.config or ""))
        raise ConfigRejected([problem])

    def _found(self, program: Program, source: GraphSource) -> Found:
        graphs = RecipeGraphs(program, self.recipes.clusters, BUILTIN, (program.calls,))
        return Found(source, graphs, _users(program, source))


def open_graph(graph: str, config: Path | None) -> Found:
    """Return the graph that a command names; says what is wrong and exits with 1 if there is none.

    Args:
        graph: as `Library.find` takes it.
        config: of the document; None: there is none.
    """
    try:
        return open_library(config).find(graph)
    except ConfigRejected as error:
        refuse(error)


def open_library(config: Path | None) -> Library:
    """Return the graphs of a document and those that ship; without a document, these alone.

    Raises:
        ConfigRejected: the document is faulty.
    """
    if config is None:
        return Library(Recipes((Program(_DEFAULT),)))
    valid = load_document(config, os.environ)
    return Library(recipes_of(valid, os.environ), config)


def _users(program: Program, source: GraphSource) -> tuple[Decision, ...]:
    def is_user(decision: Decision) -> bool:
        call = decision.algorithm.graph
        return call is not None and call.graph == source.name

    return tuple(filter(is_user, program.decisions))


def _read_file(file: Path) -> GraphSource:
    try:
        data = file.read_bytes()
    except OSError as error:
        why = error.strerror or ""
        problem = Problem("", "can't be read", why, "check the path", str(file), 1)
        raise ConfigRejected([problem]) from None
    return read_graph(file.stem, data, os.environ, file=str(file))
