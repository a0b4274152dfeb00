"""Problems collected over the stages of loading."""

from vsr.config.environment import expand
from vsr.config.position import LineIndex, Value, dotted
from vsr.config.report import Report


def whats(report: Report) -> list[str]:
    """Return what was found, in order."""
    return [problem.what for problem in report.problems()]


def test_problems_come_in_document_order() -> None:
    """Stages find them in their own order; readers go from top to bottom."""
    root: Value = {"a": 1, "b": 2}
    report = Report("doc.yaml", LineIndex(root, {id(root): {"a": 3, "b": 4}}))

    report.add(("b",), "second")
    report.add(("a",), "first")
    report.add((), "zeroth")

    assert whats(report) == ["zeroth", "first", "second"]
    assert [problem.line for problem in report.problems()] == [1, 3, 4]


def test_problem_caused_by_a_broken_value_is_dropped() -> None:
    """At it, below it and above it; not beside it."""
    report = Report("doc.yaml")

    report.add_broken(("a", 0, "b"), "broken")
    report.add(("a", 0, "b"), "at")
    report.add(("a", 0, "b", "c"), "below")
    report.add(("a", 0), "above")
    report.add(("a", 0, "d"), "beside")

    assert whats(report) == ["broken", "beside"]


def test_problem_is_reported_once() -> None:
    """Neither a repeated finding nor a second one at a broken place adds a line."""
    report = Report("doc.yaml")

    report.add_broken(("a",), "broken")
    report.add_broken(("a",), "broken otherwise")
    report.add(("b",), "same")
    report.add(("b",), "same")

    assert whats(report) == ["broken", "same"]


def test_list_is_whole_unless_a_name_may_be_missing() -> None:
    """Broken parts deep inside an item leave its name alone."""
    report = Report("doc.yaml")
    report.add_broken(("models", 1, "refs", 0), "deep")
    assert report.is_whole(("models",))

    report.add_broken(("models", 1, "name"), "the name itself")

    assert not report.is_whole(("models",))
    assert report.is_whole(("decisions",))


def test_quote_shows_the_reference_and_not_its_value() -> None:
    """The environment's text stays out of messages."""
    root: Value = {"plain": "a\nb", "given": expand("${KEY}", {"KEY": "canary"})}
    report = Report("doc.yaml", LineIndex(root))

    assert report.quote(("plain",)) == r"'a\nb'"
    assert report.quote(("given",)) == "'${KEY}'"


def test_path_is_written_as_authors_read_it() -> None:
    """Odd keys are quoted and escaped, so that a path is one line."""
    assert (
        dotted(("providers", "models", 0, "backend_refs", 1))
        == "providers.models[0].backend_refs[1]"
    )
    assert dotted(("headers", "x-a", "b.c", "d\n\x1b")) == r'headers.x-a["b.c"]["d\n\u001b"]'
