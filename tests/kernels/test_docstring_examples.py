"""The example of each public name runs, and prints what it says."""

from __future__ import annotations

import doctest
import inspect

import argand
import numpy as np
import pytest

from tools.docs.reference import documented

EXAMPLES = {
    name: inspect.getdoc(documented(name)) or ""
    for name in argand.__all__
    if ">>> " in (inspect.getdoc(documented(name)) or "")
}


def test_every_function_has_one() -> None:
    functions = {name for name in argand.__all__ if inspect.isfunction(getattr(argand, name))}
    assert functions - set(EXAMPLES) == set()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    known = {"np": np, "argand": argand}
    example = doctest.DocTestParser().get_doctest(EXAMPLES[name], known, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(example)
    assert runner.summarize(verbose=False).failed == 0, capsys.readouterr().out
