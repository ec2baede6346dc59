"""States to begin with, complex128 of norm 1, made in boxes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from workflow.drawn import Box, Drawn
from workflow.storage.noise import complex_normal

Array = npt.NDArray[Any]
TYPE = np.dtype(np.complex128)


def zero_state(amplitudes: int) -> Drawn:
    """Return |0...0>."""

    def make(box: Box) -> Array:
        state = np.zeros(box.shape, TYPE)
        if box.offset == (0,):
            state[0] = 1
        return state

    return Drawn((amplitudes,), TYPE, make)


def random_state(amplitudes: int, rng: Callable[..., np.random.Generator]) -> Drawn:
    """Return a state drawn evenly from all: Gaussian amplitudes over their norm.

    Drawn twice, since the norm is known only when all of it has been; ``rng`` gives a generator for
    each key.
    """

    def make(box: Box) -> Array:
        return complex_normal(rng(*box.offset), box.shape).astype(TYPE)

    gaussian = Drawn((amplitudes,), TYPE, make)
    norm = math.sqrt(math.fsum(gaussian.each(_square)))
    return Drawn((amplitudes,), TYPE, lambda box: make(box) / norm)


def _square(amplitudes: Array) -> float:
    return float(np.vdot(amplitudes, amplitudes).real)
