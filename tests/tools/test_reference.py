"""Docstrings as the reference shows them."""

from __future__ import annotations

from tools.docs.reference import docstring_markdown

DOCSTRING = """Sum.

Two
lines.

Args:
    a: one,
        or two.
    b: the last.

Raises
no error.
"""
MARKDOWN = """Sum.

Two lines.

Args:

- **a**: one, or two.
- **b**: the last.

Raises no error.
"""


def test_text_after_the_arguments_is_a_paragraph_of_its_own() -> None:
    assert docstring_markdown(DOCSTRING) == MARKDOWN
