"""Precisions of a GPU that a CPU computes as models: they round as a GPU does."""

from __future__ import annotations

from argand.precision import any_precision


def is_model(precision: str, backend: str) -> bool:
    """Return whether a result's errors count and its time says nothing.

    No peer has such a precision on a CPU, and `workflow.steps.result_choice.choose` never takes it.
    """
    return backend == "cpu" and not any_precision(precision).exact_operands
