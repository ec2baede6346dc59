"""Small filter banks for compute-sanitizer: ``python -m benchmarks.sanitize.channelise fp32``.

Every type of samples, lengths that the kernel takes and others, critically sampled and oversampled.
In kernels by specialised warps every lane arrives at mbarriers: racecheck follows that order.
Each array is an allocation of its own, so that an access beyond it is one beyond what is allocated.
The exit status is 1 where a spectrum is beyond its bound.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from argand import PRECISIONS, ChanneliseProblem, channelise, pairs
from argand.channelise.plan import plan_channelise
from argand.channelise.sm90_plan import specialized
from argand.device import gpu
from scipy.signal import firwin

from benchmarks.harness.samples import on_host
from benchmarks.sanitize.signals import KINDS, REAL_KINDS, drawn_signal
from benchmarks.sanitize.verdicts import bounded_program
from workflow.accuracy.channelise_accuracy import channelise_reference
from workflow.accuracy.channelise_bounds import channelise_bound

BANKS = (
    (16, 4, "1", 37), (12, 5, "4/3", 20), (1024, 8, "1", 11), (1024, 8, "4/3", 7), (64, 6, "2", 19),
    (37, 3, "1", 5), (51, 5, "3/2", 9), (4096, 8, "1", 9), (2048, 5, "1", 23), (15, 40, "3/2", 21),
)  # fmt: skip
"""Channels, taps, oversampling and spectra."""
_SEED = 1


def banks(precision: str, arrays: Any) -> Iterator[tuple[str, float]]:
    """Yield (call, the largest error of a spectrum over its bound).

    ``arrays`` is the module of the arrays, cupy (or numpy).
    """
    rng = np.random.default_rng(_SEED)
    for number, (channels, taps, oversampling, spectra) in enumerate(BANKS):
        fraction, h = Fraction(oversampling), firwin(channels * taps, 1 / channels)
        samples = channels * taps + (spectra - 1) * int(channels / fraction)
        for kind in KINDS:
            given, exact = drawn_signal(rng, kind, samples)
            x = arrays.asarray(given)
            real = kind in REAL_KINDS
            conjugate = not real and number % 2 == 1
            problem = ChanneliseProblem(
                (2,), samples, channels, taps, fraction, real, PRECISIONS[precision], conjugate
            )
            with nullcontext() if arrays is np else watched(problem, kind):
                found = channelise(
                    pairs(x) if "pairs" in kind else x, channels, taps, window=h,
                    oversampling=fraction, precision=precision, conjugate=conjugate,
                )  # fmt: skip
            exact = exact.conj() if conjugate else exact
            truth = channelise_reference(exact, h, channels, fraction)
            ran = ""
            if arrays is not np:
                from argand.channelise.gpu import algorithm

                ran = algorithm(problem, gpu(0))[1]
            bound = channelise_bound(
                PRECISIONS[precision], channels, taps, "cpu" if arrays is np else "cuda",
                real=real, ran=ran,
            )  # fmt: skip
            error = np.linalg.norm(on_host(found) - truth.values, axis=-1) * 2 ** (0.5 * real)
            ratio = float((error / bound.allowed(truth.size, truth.norm)).max())
            words = f"{kind}, conjugates" if conjugate else kind
            yield f"{channels} channels, {taps} taps, {oversampling}, {words}", ratio


main = bounded_program(
    __doc__,
    ("precision", list(PRECISIONS)),
    banks,
    "a spectrum is off by {} times its bound",
)


def watched(problem: ChanneliseProblem, kind: str) -> AbstractContextManager[None]:
    """Return a context in which a bank by specialised warps arrives lane by lane."""
    from argand.channelise.gpu import PLAN_OVERRIDE

    arch = gpu(0).require_arch()
    plan = plan_channelise(problem, arch)
    component = "int8" if "int8" in kind else "float32"
    found = None if plan is None else specialized(plan, component, arch)
    if found is None:
        return nullcontext()
    return PLAN_OVERRIDE.use(replace(found, arrive_per_lane=True))


if __name__ == "__main__":
    sys.exit(main())
