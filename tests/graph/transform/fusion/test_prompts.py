"""Transformers that write the prompts of fusion."""

from typing import Literal

import pytest

from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply
from vsr.graph.transform.fusion.analysis import KEYS, Findings
from vsr.graph.transform.fusion.grounding import Grounded, ReplyScore
from vsr.graph.transform.fusion.prompts import PromptAnalysis, PromptFallback, PromptFinal
from vsr.graph.value import Inputs, Prompt

INPUTS = Inputs(ChatBody({}))
PANEL = (Reply("b", "text two", "thought two"), Reply("a", "text one"))
PLAIN = Grounded(PANEL)
SCORES = (
    ReplyScore("a", 0.125),
    ReplyScore("b", 0.775, ("first\nspan", "second")),
    ReplyScore("gone", 0.1, dropped=True),
)
LINES = "- a: 0.12\n- b: 0.78, in doubt: first span; second\n- gone: 0.10, left out"
FINDINGS = Findings(consensus=("agreed on zeta",))
UNREADABLE = Findings(raw="some prose", parse_failed=True)


def _scored(policy: Literal["weight", "annotate", "filter"]) -> Grounded:
    return Grounded(PANEL, SCORES, "panel", policy)


def test_analysis_prompt_holds_question_replies_and_keys() -> None:
    """It goes behind the client's messages and asks for the known keys alone."""
    prompt = PromptAnalysis("the question", PLAIN)(INPUTS)

    assert prompt.place == "append"
    assert "the question" in prompt.text
    assert all(f'"{key}"' in prompt.text for key in KEYS)
    assert "{{" not in prompt.text


def test_replies_are_numbered_in_the_order_of_the_panel() -> None:
    """A reply is its number, model and content, then its reasoning if it has any."""
    prompt = PromptAnalysis("q", PLAIN, template="{{responses}}")(INPUTS)

    assert prompt.text == (
        "Answer 1 (b):\ntext two\nIts reasoning:\nthought two\n\nAnswer 2 (a):\ntext one"
    )


@pytest.mark.parametrize("policy", ["weight", "annotate", "filter"])
def test_analysis_prompt_always_ends_with_the_scores(
    policy: Literal["weight", "annotate", "filter"],
) -> None:
    """The comparing judge is told of dropped replies too, whatever the policy is."""
    prompt = PromptAnalysis("q", _scored(policy), template="own")(INPUTS)

    assert prompt.text.startswith("own\n\n")
    assert prompt.text.endswith(f"\n{LINES}")


@pytest.mark.parametrize("mode", ["separate", "one_call", "none"])
def test_final_prompt_holds_what_the_judge_needs(
    mode: Literal["separate", "one_call", "none"],
) -> None:
    """Whatever the mode, the judge gets question, replies and contract, the contract last."""
    prompt = PromptFinal("the question", PLAIN, mode=mode, contract="in one line")(INPUTS)

    assert prompt.place == "append"
    assert all(text in prompt.text for text in ("the question", "text one", "thought two"))
    assert prompt.text.endswith("\nRequired output contract:\nin one line\n")
    assert "{{" not in prompt.text


def test_final_prompts_differ_in_what_they_ask_of_the_judge() -> None:
    """Only a separate comparison is shown; the direct form asks for none."""
    texts = [
        PromptFinal("q", PLAIN, FINDINGS, mode)(INPUTS).text
        for mode in ("separate", "one_call", "none")
    ]

    assert ["agreed on zeta" in text for text in texts] == [True, False, False]
    assert ["ompar" in text.replace("were compared", "") for text in texts] == [True, True, False]


@pytest.mark.parametrize("findings", [None, UNREADABLE])
def test_final_prompt_says_that_there_is_no_comparison(findings: Findings | None) -> None:
    """A judge does not see a comparison that could not be read."""
    text = PromptFinal("q", PLAIN, findings)(INPUTS).text

    assert "No comparison is available" in text
    assert "some prose" not in text


def test_own_template_gets_the_comparison_as_it_is() -> None:
    """An author's template shows an unreadable comparison, and nothing where there is none."""
    template = "{{original}}|{{analysis}}|"

    shown = PromptFinal("q", PLAIN, UNREADABLE, template=template)(INPUTS).text
    empty = PromptFinal("q", PLAIN, None, template=template)(INPUTS).text

    assert '"raw": "some prose"' in shown
    assert empty == "q||"


def test_template_is_filled_once() -> None:
    """A client that writes a placeholder gets it back, and cannot pull in other texts."""
    grounded = Grounded((Reply("a", "{{original}}"),))

    text = PromptFinal(
        "{{responses}}", grounded, template="{{original}} {{responses}} {{ original }} {{other}}"
    )(INPUTS).text

    assert text == "{{responses}} Answer 1 (a):\n{{original}} {{ original }} {{other}}"


def test_final_prompt_shows_scores_as_the_policy_says() -> None:
    """`weight` adds what to do with them, `annotate` only shows them, `filter` has done its work.

    The contract comes last, so that no note is taken for a part of it.
    """
    weighed, shown, filtered = (
        PromptFinal("q", _scored(policy), template="own", contract="short")(INPUTS).text
        for policy in ("weight", "annotate", "filter")
    )
    contract = "\nRequired output contract:\nshort\n"

    assert "hint and no proof" in weighed
    assert weighed.endswith(LINES + contract)
    assert "hint and no proof" not in shown
    assert shown.endswith(LINES + contract)
    assert filtered == f"own{contract}"


def test_fallback_is_told_of_the_contract_alone() -> None:
    """The client's own messages say the rest; without a contract nothing is added to them."""
    prompt = PromptFallback(contract="short")(INPUTS)

    assert prompt == Prompt("Required output contract:\nshort\n")
    assert PromptFallback()(INPUTS) is None
