"""Examples run as they stand: that of each public name, and the chain of docs/python.md."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path
from typing import Any

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


LIGHT, TUNED, RATE = 299_792_458.0, 150e6, 6.4e6
SOURCE = np.array([0.3, -0.2])


@pytest.fixture
def lines(root: Path) -> str:
    section = (root / "docs" / "python.md").read_text().split("## Signals of antennas")[1]
    return section.split("```python\n")[1].split("```")[0]


def test_the_source_is_where_it_was_planted(lines: str, rng: np.random.Generator) -> None:
    """A wave of noise arrives at 12 antennas from one of 81 directions."""
    positions = rng.uniform(-15, 15, (12, 3)) * [1, 1, 0.1]
    hertz = TUNED + RATE * np.fft.fftfreq(64)
    grid = np.linspace(-0.4, 0.4, 9)
    directions = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    toward = np.append(SOURCE, np.sqrt(1 - np.square(SOURCE).sum()))
    count = 64 * (128 + 7)  # 128 spectra of 8 taps
    wave = np.fft.fft(rng.standard_normal((count, 2)) @ [1, 1j])
    delays = positions @ toward / LIGHT  # it arrives earlier
    phases = np.exp(2j * np.pi * (TUNED + RATE * np.fft.fftfreq(count)) * delays[:, None])
    noise = rng.standard_normal((12, count, 2)) @ [1, 1j]
    cosines = np.hstack([directions, np.sqrt(1 - np.square(directions).sum(axis=1, keepdims=True))])
    turns = hertz[:, None, None] * (cosines @ positions.T) / LIGHT
    given: dict[str, Any] = {
        "voltages": (np.fft.ifft(wave * phases) + 0.1 * noise).astype(np.complex64),
        "positions": positions, "hertz": hertz, "directions": directions,
        "weights": np.exp(-2j * np.pi * turns).astype(np.complex64),
    }  # fmt: skip
    exec(lines, given)
    assert given["channels"].shape == (12, 128, 64)
    assert given["v"].shape == (64, 12, 12)
    assert given["p"].shape == (64, 81, 8)
    assert given["w"].shape == (12, 1, 1024)
    for power in (given["sky"], given["p"].sum(axis=(0, 2))):
        np.testing.assert_allclose(directions[power.argmax()], SOURCE)
