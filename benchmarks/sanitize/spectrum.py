"""Small spectral estimates for compute-sanitizer: ``python -m benchmarks.sanitize.spectrum fp32``.

Every type of samples, lengths that the kernel takes and others, single segments and means of a few
and of many. Each array is an allocation of its own, so that an access beyond it is one beyond what
is allocated. The exit status is 1 where a bin is beyond its bound.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from argand import PRECISIONS, pairs, spectrum
from argand.device import gpu
from argand.spectrum.problem import DETRENDS, spectrum_problem
from argand.spectrum.window import window_of

from benchmarks.harness.samples import on_host
from benchmarks.sanitize.signals import KINDS, REAL_KINDS, drawn_signal
from benchmarks.sanitize.verdicts import bounded_program
from workflow.accuracy.spectra_accuracy import spectra_reference
from workflow.accuracy.spectra_bounds import BLOCKS, spectra_bound

CASES: tuple[tuple[int, int, int | str, int], ...] = (
    (16, 8, 1, 37), (16, 3, 5, 50), (64, 32, "all", 90), (1024, 512, "all", 21), (1024, 1, 3, 9),
    (37, 11, 4, 9), (2048, 1024, 1, 3), (100, 51, "all", 33),
)  # fmt: skip
"""Length, overlap, segments of a group, and segments."""
_SEED = 1


def estimates(precision: str, arrays: Any) -> Iterator[tuple[str, float]]:
    """Yield (call, the largest error of a bin over its bound).

    ``arrays`` is the module of the arrays, cupy (or numpy).
    """
    rng = np.random.default_rng(_SEED)
    row, backend = PRECISIONS[precision], "cpu" if arrays is np else "cuda"
    for number, (length, overlap, average, segments) in enumerate(CASES):
        detrend = (None, *DETRENDS)[number % 3]
        samples = length + (segments - 1) * (length - overlap)
        for kind in KINDS:
            given, exact = drawn_signal(rng, kind, samples)
            real = kind in REAL_KINDS
            conjugate = not real and number % 2 == 1
            problem = spectrum_problem(
                (2, samples), length=length, overlap=overlap, average=average, real=real,
                onesided=None, precision=row, detrend=detrend, conjugate=conjugate,
            )  # fmt: skip
            x = arrays.asarray(given)
            found = spectrum(
                pairs(x) if "pairs" in kind else x, length, overlap=overlap, average=average,
                precision=precision, detrend=detrend, conjugate=conjugate,
            )  # fmt: skip
            truth = spectra_reference(
                exact.conj() if conjugate else exact, window_of("hann", length), problem,
                scaling="density", sample_rate=1.0,
            )  # fmt: skip
            ran = BLOCKS
            if arrays is not np:
                from argand.spectrum.gpu import algorithm

                ran = algorithm(problem, gpu(0))[1]
            bound = spectra_bound(row, problem, backend, rows=len(truth.power), ran=ran)
            error = np.abs(on_host(found) - truth.power)
            allowed = bound.of_bins(truth.power, truth.total[..., None], truth.given[..., None])
            words = f"{kind}, conjugates" if conjugate else kind
            yield (
                f"{length} samples, overlap {overlap}, average {average}, {words}, less {detrend}",
                float((error / allowed).max()),
            )


main = bounded_program(
    __doc__,
    ("precision", list(PRECISIONS)),
    estimates,
    "a bin is off by {} times its bound",
)


if __name__ == "__main__":
    sys.exit(main())
