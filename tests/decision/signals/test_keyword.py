"""Signal `keyword`."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vsr.codec.chat import ChatRequest, read_chat
from vsr.decision.signals.keyword import KeywordSignals
from vsr.errors import ConfigRejected
from vsr.resources.program import KeywordMethod, KeywordOperator, KeywordSignal, Program

LETTERS = "abkKsS1_éÉßſ\u212a\u03c3ςΣ\u0441\u0421жЖ表"
"""With folding partners outside ASCII: Kelvin sign, long s, final sigma, Cyrillic."""

HAN = "表"


def ask(text: str, *rules: KeywordSignal) -> list[str]:
    """Return the names of the rules that match a user's text."""
    return [match.name for match in KeywordSignals(Program("p", keywords=rules))(chat(text))]


def chat(text: str) -> ChatRequest:
    """Return a request that says `text`."""
    body = {"model": "auto", "messages": [{"role": "user", "content": text}]}
    return read_chat(json.dumps(body).encode())


def is_word(text: str, at: int) -> bool:
    """Return whether an ASCII word character stands at `at`."""
    return 0 <= at < len(text) and text[at].isascii() and (text[at].isalnum() or text[at] == "_")


def folds(one: str, other: str) -> bool:
    """Return whether two characters are the same but for their case."""
    return one == other or one.lower() == other.lower() or one.upper() == other.upper()


def occurs(keyword: str, text: str, *, case_sensitive: bool) -> bool:
    """Return whether a literal keyword matches, by the words of the rule."""
    is_bounded = any(c.isalnum() or c == "_" for c in keyword) and HAN not in keyword
    for start in range(len(text) - len(keyword) + 1):
        end = start + len(keyword)
        pairs = zip(keyword, text[start:end], strict=True)
        if not all(a == b or (not case_sensitive and folds(a, b)) for a, b in pairs):
            continue
        if not is_bounded or (
            is_word(text, start - 1) != is_word(text, start)
            and is_word(text, end - 1) != is_word(text, end)
        ):
            return True
    return False


KEYWORDS = st.text(LETTERS + " .+*(\\", min_size=1, max_size=4)


@given(
    keywords=st.lists(KEYWORDS, min_size=1, max_size=4),
    text=st.text(LETTERS + " .+*(\\\n", max_size=14),
    operator=st.sampled_from(KeywordOperator),
    case_sensitive=st.booleans(),
)
@example(keywords=["k"], text="\u212a", operator=KeywordOperator.OR, case_sensitive=False)
@example(keywords=["ab"], text="_ab", operator=KeywordOperator.OR, case_sensitive=False)
@example(keywords=["a+"], text="a+b", operator=KeywordOperator.OR, case_sensitive=False)
def test_literal_keywords_follow_the_rule(
    keywords: list[str], text: str, operator: KeywordOperator, *, case_sensitive: bool
) -> None:
    """Any keywords in any text match as the rule's words say, each at its own boundaries."""
    rule = KeywordSignal("r", operator, tuple(keywords), case_sensitive=case_sensitive)
    hits = [occurs(keyword, text, case_sensitive=case_sensitive) for keyword in keywords]
    expected = {
        KeywordOperator.OR: any(hits),
        KeywordOperator.AND: all(hits),
        KeywordOperator.NOR: not any(hits),
    }[operator]

    assert (ask(text, rule) == ["r"]) == expected


@pytest.mark.parametrize(
    ("keyword", "text", "expected"),
    [
        ("secret", "this is a SECRET.", True),
        ("secret", "this is a secretary", False),
        ("api", "call my_api now", False),
        ("1.0", "version 1.0", True),
        ("1.0", "version 1x0", False),
        ("*", "a * b", True),
        ("C++", "I write C++ code", False),
        ("C++", "I write C++17 code", True),
        (".NET", "use .NET here", False),
        ("срочно", "это срочно нужно", False),
        ("жди", "aждиb", True),
        ("表格", "请用表格输出", True),
        ("표", "xx표xx", True),
        ("ÉTÉ", "xétéx", True),
        ("kelvin", "a\u212aelvin", True),
        ("step by step", "go Step By Step!", True),
        ("step by step", "go step  by step", False),
        ("a|b", "a|b", True),
        ("a|b", "a", False),
    ],
)
def test_literal_keyword_keeps_the_reference_quirks(
    keyword: str, text: str, *, expected: bool
) -> None:
    """ASCII boundaries at both ends, Unicode folding, everything else literal."""
    assert bool(ask(text, KeywordSignal("r", KeywordOperator.OR, (keyword,)))) is expected


def test_regex_rules_have_no_boundaries_and_own_case_rules() -> None:
    """A pattern is searched for as written; alternatives and groups stay inside their keyword."""
    pattern = KeywordMethod.REGEX
    rules = [
        KeywordSignal("any", KeywordOperator.OR, ("x|ab", "(cd)+"), pattern),
        KeywordSignal("all", KeywordOperator.AND, ("a.c", r"\d{3}"), pattern),
        KeywordSignal("cased", KeywordOperator.OR, ("[A-Z]{3}",), pattern, case_sensitive=True),
        KeywordSignal("none", KeywordOperator.NOR, ("^go",), pattern),
    ]

    assert ask("zABz", *rules) == ["any", "none"]
    assert ask("aXc 123", *rules) == ["any", "all", "none"]
    assert ask("Go CDC", *rules) == ["any", "cased"]
    assert ask("go", *rules) == []


def test_matches_come_in_configuration_order() -> None:
    """Literal and regex rules are searched apart and reported together."""
    rules = [
        KeywordSignal("z", KeywordOperator.OR, ("one",)),
        KeywordSignal("y", KeywordOperator.OR, ("o",), KeywordMethod.REGEX),
        KeywordSignal("x", KeywordOperator.NOR, ("three",)),
        KeywordSignal("w", KeywordOperator.AND, ("two", "one")),
    ]

    assert ask("one two", *rules) == ["z", "y", "x", "w"]
    assert ask("nothing", *rules) == ["y", "x"]


def test_rules_without_keywords() -> None:
    """Nothing to find: OR needs one, AND and NOR have nothing against it."""
    rules = [KeywordSignal(operator.name, operator, ()) for operator in KeywordOperator]

    assert ask("text", *rules) == ["AND", "NOR"]


def test_many_keywords_are_split_over_sets() -> None:
    """More keywords than one automaton holds are searched for all the same."""
    words = tuple(
        f"{n:x}".translate(str.maketrans("0123456789", "ghijklmnop")) * 9 for n in range(9999)
    )
    rule = KeywordSignal("many", KeywordOperator.OR, words)
    signals = KeywordSignals(Program("p", keywords=(rule,)))

    for word in (words[0], words[5000], words[-1]):
        assert signals(chat(f"say {word} now"))
    assert not signals(chat("say nothing now"))


def test_refused_patterns_are_all_listed() -> None:
    """Every keyword that RE2 refuses is a problem with its place and RE2's reason."""
    pattern = KeywordMethod.REGEX
    rules = (
        KeywordSignal("good", KeywordOperator.OR, ("[",)),
        KeywordSignal("bad", KeywordOperator.OR, ("ok", "(", r"(?=x)"), pattern),
        KeywordSignal("worse", KeywordOperator.AND, (r"(a)\1",), pattern),
        KeywordSignal("large", KeywordOperator.OR, (r"\pL{500}",), pattern),
    )

    with pytest.raises(ConfigRejected) as caught:
        KeywordSignals(Program("p", keywords=rules))

    problems = caught.value.problems
    assert [problem.path for problem in problems] == [
        "signals.keywords[1].keywords[1]",
        "signals.keywords[1].keywords[2]",
        "signals.keywords[2].keywords[0]",
        "signals.keywords[3].keywords[0]",
    ]
    assert "missing )" in problems[0].why
    assert all(problem.why for problem in problems)


def test_patterns_too_large_together_are_a_problem_of_the_rule() -> None:
    """Patterns that are fine one by one can exceed the memory of a rule's set."""
    patterns = tuple(rf"{letter}\pL{{40}}" for letter in "abcdef")
    rule = KeywordSignal("large", KeywordOperator.OR, patterns, KeywordMethod.REGEX)

    with pytest.raises(ConfigRejected) as caught:
        KeywordSignals(Program("p", keywords=(rule,)))

    assert [problem.path for problem in caught.value.problems] == ["signals.keywords[0].keywords"]


def test_a_literal_keyword_can_be_too_large() -> None:
    """A keyword of megabytes is refused, not searched for by other means."""
    rule = KeywordSignal("huge", KeywordOperator.OR, ("a" * 3_000_000,))

    with pytest.raises(ConfigRejected) as caught:
        KeywordSignals(Program("p", keywords=(rule,)))

    assert [problem.path for problem in caught.value.problems] == ["signals.keywords"]
