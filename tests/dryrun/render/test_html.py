"""Pages and pictures of a run."""

from tests.dryrun.small_graphs import ONE_CALL, run
from vsr.dryrun.render.html import render_html
from vsr.dryrun.render.mermaid import render_mermaid
from vsr.dryrun.render.svg import render_svg

ODD = "<script>alert(1)</script>"


def test_what_models_say_and_are_called_is_only_text() -> None:
    """A reply or a name must not become a part of the page."""
    graph = ONE_CALL.replace("model: alpha", f"model: '{ODD}'")

    record = run(graph, f"{{models: {{'{ODD}': {{reply: '{ODD}'}}}}}}")

    assert record.answer.text == ODD
    assert "<script" not in render_html(record)
    assert "<script" not in render_svg(record)


def test_name_of_a_mermaid_task_ends_where_it_should() -> None:
    """A colon would begin its data."""
    graph = ONE_CALL.replace("model: alpha", "model: 'org/a:b;c#d'")

    text = render_mermaid(run(graph, "{models: {'org/a:b;c#d': {latency: 1s}}}"))

    assert "    org/a b c d ok :crit, active, 0, 1000\n" in text
