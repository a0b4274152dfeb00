"""What the built-in prompts of fusion say, and how replies and scores stand in them."""

import re
from collections.abc import Mapping, Sequence

from vsr.codec.chat_reply import Reply
from vsr.graph.transform.fusion.grounding import ReplyScore

ANALYSIS = """\
Several assistants answered the same request, none knowing of the others. Compare their answers. \
Do not answer the request yourself.

Request:
{{original}}

Answers:
{{responses}}

Reply with one compact JSON object, without Markdown and without any other text. It has these keys:
"consensus": what the answers agree on;
"contradictions": where they exclude one another, and who says what;
"partial_coverage": points of the request that only some of them treat;
"unique_insights": something useful that a single answer has;
"blind_spots": what the request needs and no answer has.
Each value is a list of at most two short strings, empty if there is nothing to say."""

_ANSWER_RULES = """\
Write the answer that the user is to read. Where the answers above contradict each other, decide \
by the better evidence instead of reporting the dispute. Keep to the format, the language and the \
limits that the request asks for. Do not mention that there were several answers, how they were \
compared, or the name of any model."""

SEPARATE = (
    """\
Several assistants answered the request below, and their answers were compared.

Request:
{{original}}

Comparison:
{{analysis}}

Answers:
{{responses}}

"""
    + _ANSWER_RULES
)

ONE_CALL = (
    """\
Several assistants answered the request below, none knowing of the others.

Request:
{{original}}

Answers:
{{responses}}

First compare the answers for yourself: where they agree, where they exclude one another, what \
only one of them saw and what all of them missed. Keep this comparison to yourself.
"""
    + _ANSWER_RULES
)

DIRECT = (
    """\
Answer the request below. These drafts of an answer may help you.

Request:
{{original}}

Answers:
{{responses}}

"""
    + _ANSWER_RULES
)

NO_COMPARISON = "No comparison is available; weigh the answers yourself."

NOTES = "How well each answer is supported, from 0 (not at all) to 1 (fully):"

PREFER_SUPPORTED = """\
Rely more on answers with better support. Support is a hint and no proof: an answer that stands \
alone can be the right one, so do not reject it for that reason."""

_PLACEHOLDER = re.compile(r"\{\{(original|responses|analysis)\}\}")


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """Put values into the places of `template`, once: places within a value stay as they are.

    Args:
        template: its places are `{{original}}`, `{{responses}}` and `{{analysis}}`.
        values: of all three.
    """
    return _PLACEHOLDER.sub(lambda place: values[place[1]], template)


def show_replies(replies: Sequence[Reply]) -> str:
    """Return the replies, numbered from 1, a blank line between them."""
    return "\n\n".join(_show_reply(number, reply) for number, reply in enumerate(replies, 1))


def show_scores(scores: Sequence[ReplyScore]) -> str:
    """Return one line for each reply: its model, its score, whether it is left out, its flags."""
    return "\n".join((NOTES, *map(_show_score, scores)))


def _show_reply(number: int, reply: Reply) -> str:
    lines = [f"Answer {number} ({reply.model}):", reply.content]
    if reply.reasoning.strip():
        lines += ["Its reasoning:", reply.reasoning]
    return "\n".join(lines)


def _show_score(score: ReplyScore) -> str:
    dropped = ", left out" if score.dropped else ""
    flags = "; ".join(" ".join(span.split()) for span in score.flagged_spans)
    return f"- {score.model}: {score.score:.2f}{dropped}{f', in doubt: {flags}' if flags else ''}"
