"""What is wrong with a template, at load or at run time."""


class TemplateRefused(ValueError):
    """A template that cannot be used; the message says where and why, and shows no data."""
