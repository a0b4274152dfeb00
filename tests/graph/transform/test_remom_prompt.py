"""Transformer `remom_prompt`."""

import pytest

from tests.graph.remom_replies import INPUTS, reply, round_of
from vsr.errors import GraphFailed
from vsr.graph.remom_round import RoundRecord
from vsr.graph.transform.remom_prompt import RemomPrompt, check_synthesis_template
from vsr.graph.transform.template_refused import TemplateRefused
from vsr.graph.value import Prompt

ROUND = round_of(
    reply("view one", reasoning="hidden one"),
    reply(" ", model="b", reasoning="hidden two"),
    number=2,
)


def _text(step: RemomPrompt) -> str:
    prompt = step(INPUTS)

    assert prompt is not None
    assert prompt.place == "replace_last"
    return prompt.text


def test_first_round_has_the_clients_own_message() -> None:
    """A contract alone changes nothing yet."""
    assert RemomPrompt("q", contract="one word")(INPUTS) is None


def test_first_round_is_told_of_a_json_action() -> None:
    """Then the question and the contract stand in the place of the last message."""
    prompt = RemomPrompt("q", contract="JSON only", is_action=True)(INPUTS)

    assert prompt == Prompt("q\n\nRequired output contract:\nJSON only", "replace_last")


def test_prompt_has_question_and_numbered_replies_in_order() -> None:
    """Reasoning stands in for blank content, and is else not shown."""
    text = _text(RemomPrompt("the question", ROUND))

    places = [
        text.index(part)
        for part in ("the question", "Attempt 1, by a", "view one", "Attempt 2, by b", "hidden two")
    ]
    assert places == sorted(places)
    assert "hidden one" not in text
    assert "contract" not in text


def test_reasoning_stands_before_its_answer() -> None:
    """A reply without content has its reasoning, and no answer."""
    text = _text(RemomPrompt("q", ROUND, include_reasoning=True))

    assert text.index("hidden one") < text.index("view one") < text.index("hidden two")
    assert text.count("hidden two") == 1
    assert text.count("Answer:") == 1


def test_contract_is_told_with_the_question_and_at_the_end() -> None:
    """The last line a model reads is about the form of its answer."""
    text = _text(RemomPrompt("q", ROUND, contract="one word"))

    assert text.count("Required output contract:\none word\n") == 2
    assert text.endswith("\nRequired output contract:\none word\n")


def test_replies_are_compacted() -> None:
    """Only their last bytes are shown."""
    step = RemomPrompt("q", ROUND, compaction="last_n_tokens", compaction_tokens=1)

    text = _text(step)

    assert "\n one\n" in text
    assert "view" not in text


def test_blank_replies_are_not_numbered() -> None:
    """They are nothing to compare."""
    text = _text(RemomPrompt("q", round_of(reply(""), reply("good"))))

    assert "Attempt 1, by a:\n\nAnswer:\ngood" in text
    assert "Attempt 2" not in text


TEMPLATE = (
    "{{.OriginalContent}}{{range $i, $r := .ReferenceResponses}}"
    "|{{add $i 1}} {{$r.Model}} {{$r.Content}}{{if $r.Reasoning}} ({{$r.Reasoning}}){{end}}{{end}}"
)


def test_template_of_the_deployer_has_the_same_data() -> None:
    """The contract still stands at the end."""
    step = RemomPrompt("q", ROUND, contract="C", synthesis_template=TEMPLATE)

    text = _text(step)

    contract = "Required output contract:\nC"
    assert text == f"q\n\n{contract}|1 a view one|2 b hidden two\n{contract}\n"


def test_template_of_the_deployer_may_show_reasoning() -> None:
    """It is there only where the graph shows it."""
    step = RemomPrompt("q", ROUND, include_reasoning=True, synthesis_template=TEMPLATE)

    assert _text(step) == "q|1 a view one (hidden one)|2 b  (hidden two)"


def test_template_that_fails_says_for_which_round() -> None:
    """Source: looper-algorithms 19; nothing of the replies is in the message."""
    template = "{{(index .ReferenceResponses 5).Content}}"
    step = RemomPrompt("q", RoundRecord(1, 1, kept=(reply("x"),)), synthesis_template=template)

    with pytest.raises(
        GraphFailed, match=r"^failed to build synthesis prompt for round 2: .*index"
    ):
        step(INPUTS)


def test_template_is_checked_without_running() -> None:
    """A field that replies do not have is found at load; one that they have is none."""
    check_synthesis_template(TEMPLATE)

    with pytest.raises(TemplateRefused, match="no field 'Answer'; it has Content, Reasoning, Mod"):
        check_synthesis_template("{{range .ReferenceResponses}}{{.Answer}}{{end}}")
