"""The algorithm of a transform, in words and as a plan, and the assessment by what ran."""

from __future__ import annotations

from typing import Any

from argand import PRECISIONS, Device, Precision
from argand.dft.heuristics import butterflies_for
from argand.dft.method import method_for, prime_factors
from argand.dft.plan_words import plan_in, plan_words
from argand.dft.problem import DftProblem
from argand.dft.tuned import chosen

from workflow.accuracy import Accuracy
from workflow.accuracy.references import SpectrumReference
from workflow.accuracy.transform_accuracy import assess_spectrum


def algorithm(rows: int, length: int, precision: Precision, device: Device) -> tuple[str, str]:
    """Return `argand.dft`'s algorithm for contiguous rows in words, and on a GPU its plan's.

    `assess_transform` takes the plan.
    """
    problem = DftProblem(rows, length, False, "backward", precision)
    if device.backend == "cpu":
        plan = None if problem.method is None else butterflies_for(length)
        if plan is not None:
            return f"{plan.stages} in fp32", ""
        return "pocketfft" if problem.method is None else str(problem.method), ""
    choice = chosen(problem, device)
    return str(choice), plan_words(choice.plan)


def assess_transform(
    reference: SpectrumReference, result: Any, precision: Precision, *, backend: str, ran: str = ""
) -> Accuracy:
    """Return the assessment of spectra, by the bound of what ran: the plan of `algorithm`.

    Without one it is the CPU's way at the precision. A library transforms by prime factors, in fp64
    or, at every other precision, in fp32.
    """
    length = int(reference.values.shape[-1])
    plan = plan_in(ran) if ran else None
    if plan is None and (ran or precision.exact_operands):
        library = precision if precision.exact_operands else PRECISIONS["fp32"]
        factors = prime_factors(length)
        return assess_spectrum(
            reference, result, library, factors=factors, backend=backend, library=True
        )
    method = method_for(length)
    return assess_spectrum(reference, result, precision, method=method, plan=plan, backend=backend)
