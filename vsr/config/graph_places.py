"""Where request graphs stand in a document."""

from collections.abc import Iterator

from vsr.config.position import Path, Value

_GRAPHS = ("routing", "graphs")


def is_in_graph(path: Path) -> bool:
    """Return whether `path` lies in the graphs of a recipe, where `$name` is no variable."""
    if path[:1] == ("recipes",):
        return path[2:4] == _GRAPHS
    return path[:2] == _GRAPHS


def written_graphs(values: Value) -> Iterator[tuple[Path, dict[str, Value]]]:
    """Yield the graphs of every recipe by name, with their path, as they were read from YAML."""
    if not isinstance(values, dict):
        return
    recipes = values.get("recipes")
    profiles: list[tuple[Path, Value]] = [((), values)]
    if isinstance(recipes, list):
        profiles += [(("recipes", at), each) for at, each in enumerate(recipes)]
    for path, profile in profiles:
        routing = profile.get("routing") if isinstance(profile, dict) else None
        graphs = routing.get("graphs") if isinstance(routing, dict) else None
        if isinstance(graphs, dict):
            yield (*path, *_GRAPHS), graphs
