"""Dense systems: their backward error, and the times of a solver's parts."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import solve_parts
from benchmarks.sweep.dense import backward_error


def test_backward_error_is_that_of_the_definition(rng: np.random.Generator) -> None:
    a, x = rng.standard_normal((5, 5)) + 0j, rng.standard_normal((5, 2)) + 0j
    b = a @ x
    b[3, 1] += 1
    scale = abs(a).sum(axis=1).max() * abs(x[:, 1]).max() + abs(b[:, 1]).max()
    assert backward_error(a, x, b) == pytest.approx(1 / scale, rel=1e-12)


def test_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert solve_parts.main(["--n", "40", "--device", "cpu", "--blocks", "8"]) == 0
    line = capsys.readouterr().out
    assert all(name in line for name in solve_parts.PARTS)
