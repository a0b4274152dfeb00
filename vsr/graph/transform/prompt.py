"""Transformer `prompt`: a message written by a template of the author's."""

from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import attrs

from vsr.errors import GraphFailed
from vsr.graph.env import Bound, Constant, Env, known_of
from vsr.graph.transform.template_refused import TemplateRefused
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs, Prompt
from vsr.registry import Extension


@attrs.frozen
class WritePrompt:
    """Fills in a Jinja template; see `prompt_template` for what it may do."""

    template: str
    place: Literal["append", "replace_last", "fresh"] = "append"
    """See `Prompt`."""
    name: str = "prompt"
    """What errors call the template."""
    values: Mapping[str, object] = attrs.field(factory=dict, metadata={"visible": True})
    """The names that the template may read: those that are visible at the step."""

    @staticmethod
    def faults(env: Env, bound: Mapping[str, Bound]) -> Iterator[str]:
        """Yield what is wrong with the template where it stands."""
        template = bound.get("template")
        if not known_of(template).is_given:
            yield "template comes from a result: a model's words are values, never a template"
        if isinstance(template, Constant) and isinstance(template.value, str):
            try:
                check_template(template.value, (*env.names, "params"))
            except TemplateRefused as error:
                yield f"template: {error}"

    def __call__(self, _inputs: Inputs, /) -> Prompt:
        """Return the message.

        Raises:
            GraphFailed: the template does what its values do not allow, or too much.
        """
        from vsr.graph.transform.prompt_template import render_prompt  # noqa: PLC0415  # loads Jinja

        try:
            return Prompt(render_prompt(self.template, self.values), self.place)
        except TemplateRefused as error:
            raise GraphFailed(f"prompt {self.name!r}: {error}") from None


def check_template(template: str, names: Collection[str]) -> None:
    """Check a template without running it; `names` are those that are visible to it.

    Raises:
        TemplateRefused: it cannot be used; the message says in which line and why.
    """
    from vsr.graph.transform.prompt_template import check_prompt  # noqa: PLC0415  # loads Jinja

    check_prompt(template, names)


PROMPT = Extension[Transformer](name="prompt", config=WritePrompt)
