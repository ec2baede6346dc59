"""The examples of docs/frameworks.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "frameworks.md"


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_examples_run_as_they_stand(library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    first = next(block for block in blocks if f"import {library}\n" in block)
    exec(compile(first, str(PAGE), "exec"), {})
