"""Forms of text in a config, each with an example, which messages show in place of the pattern."""

from __future__ import annotations

from pydantic import StringConstraints

EXAMPLES: dict[str, str] = {}
"""An example of each pattern."""


def text_like(pattern: str, example: str, *, longest: int | None = None) -> StringConstraints:
    """Return constraints of a field's text: a pattern, and at most ``longest`` characters."""
    EXAMPLES[pattern] = example
    return StringConstraints(pattern=pattern, max_length=longest)
