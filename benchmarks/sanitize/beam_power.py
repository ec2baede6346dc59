"""Small beams for compute-sanitizer: ``python -m benchmarks.sanitize.beam_power tf32``.

Sizes below and above a tile along every axis, bins that divide a tile, that do not and that are
longer, one and two polarizations, and samples of complex64, int8 and the precision's own 16 bits.
Each operand is an allocation of its own. The exit status is 1 where a power is beyond its bound.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from argand import PRECISIONS, Pairs, beam_power, pairs, to_pairs
from argand.beam_power.problem import EXACT, Detect, beam_power_problem

from benchmarks.harness.samples import on_host
from benchmarks.sanitize.verdicts import bounded_program
from workflow.accuracy.beam_power_bounds import allowed, detected

SIZES: tuple[tuple[int, int, int, int, Detect], ...] = (
    (1, 1, 3, 1, "power"), (65, 37, 211, 7, "power"), (9, 70, 150, 16, "power"),
    (33, 20, 400, 200, "power"), (17, 40, 133, 8, "stokes"), (40, 70, 133, 4, "stokes"),
    (65, 300, 130, 8, "power"), (34, 400, 66, 3, "stokes"), (3, 70, 133, 50, "stokes"),
)  # fmt: skip
"""Beams, antennas, samples, samples of a bin, and what is detected."""
_SEED = 1


def powers(precision: str, arrays: Any) -> Iterator[tuple[str, float]]:
    """Yield (call, the largest error of a power over its bound).

    ``arrays`` is the module of the arrays, cupy (or numpy).
    """
    exact_beams = precision == EXACT.name
    rng, row = np.random.default_rng(_SEED), EXACT if exact_beams else PRECISIONS[precision]
    backend = "cpu" if arrays is np else "cuda"
    for beams, antennas, samples, integrate, detect in SIZES:
        outer = (2, 2) if detect == "stokes" else (2,)
        w, x = (
            rng.standard_normal((*outer, *shape, 2)).astype(np.float32).view(np.complex64)[..., 0]
            for shape in ((beams, antennas), (antennas, samples))
        )
        if exact_beams:
            w = np.rint(20 * w.view(np.float32)).view(np.complex64)
        for form, given in _forms(x, precision).items():
            problem = beam_power_problem(
                w.shape, x.shape, detect=detect, integrate=integrate, precision=row
            )
            values = given.to_complex64() if isinstance(given, Pairs) else given
            held = detected(problem, w, values, row)
            exact = detected(problem, w, values)
            bound = allowed(problem, exact, held, row, backend).reshape(problem.shape)
            moved = (
                Pairs(arrays.asarray(given.array), given.format)
                if isinstance(given, Pairs)
                else arrays.asarray(given)
            )
            weights = arrays.asarray(w)
            if exact_beams:
                weights = pairs(weights.view(np.float32).astype(np.int8).reshape(*w.shape, 2))
            found = beam_power(
                weights, moved, detect=detect, integrate=integrate, precision=precision
            )
            off = np.abs(on_host(found) - exact.power.reshape(problem.shape)) / bound
            yield (
                f"{form} {beams} x {antennas} x {samples} / {integrate} {detect}",
                float(off.max()),
            )


def _forms(x: Any, precision: str) -> dict[str, Any]:
    """Return samples as complex64, as int8 and, where the precision has them, as its own pairs."""
    parts = np.stack([x.real, x.imag], axis=-1)
    integers = pairs(np.rint(20 * parts).astype(np.int8))
    if precision == EXACT.name:
        return {"int8": integers}
    forms = {"complex64": x, "int8": integers}
    if precision in ("fp16", "bf16"):
        forms[precision] = to_pairs(x, precision)
    return forms


main = bounded_program(
    __doc__,
    ("precision", [*PRECISIONS, EXACT.name]),
    powers,
    "a power is off by {} times its bound",
)


if __name__ == "__main__":
    sys.exit(main())
