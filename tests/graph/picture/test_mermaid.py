"""Graphs as Mermaid flowcharts."""

from vsr.graph.picture.mermaid import render_mermaid
from vsr.graph.picture.outline import Item, Part

CALL = Item("", "call", ())
END = Item("", "respond", (("from", "$a"),))


def arrows(*items: Item) -> list[str]:
    """Return the arrows of a flowchart."""
    lines = render_mermaid("it", items).splitlines()
    return [line.strip() for line in lines if "->" in line]


def test_steps_follow_each_other() -> None:
    """From the request to the answer."""
    assert arrows(CALL, CALL, END) == ["request --> n0", "n0 --> n1", "n1 --> n2"]


def test_branch_goes_on_from_every_arm_that_comes_to_its_end() -> None:
    """Not from one that answers; past all arms where there is no other way."""
    branch = Item("", "branch", (), (Part("when x", (END,)), Part("when y", (CALL,))))

    assert arrows(branch, CALL)[1:] == [
        'n0 -->|"when x"| n1',
        'n0 -->|"when y"| n2',
        "n2 --> n3",
        'n0 -->|"else"| n3',
    ]


def test_loop_comes_back() -> None:
    """From the end of its steps, and goes on from itself."""
    loop = Item("", "loop", (), (Part("do", (CALL,)),))

    assert arrows(loop, END)[1:] == ['n0 -->|"do"| n1', "n1 -.-> n0", 'n0 -->|"done"| n2']


def test_signs_of_mermaid_and_html_are_taken_out() -> None:
    """Authored text is text."""
    text = render_mermaid('a "b" <c>', [Item("", "call", (("model", '"x" & <y>'),))])

    assert 'request(["a #quot;b#quot; #lt;c#gt;"])' in text
    assert 'n0["call<br/>model #quot;x#quot; #amp; #lt;y#gt;"]' in text
