"""Shapes and gradients of softmax and its like, for frameworks that trace and differentiate it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from argand.defaults import default_precision
from argand.frameworks.rules import Differentiated, FrameworkRules, Spec, namespace, stored
from argand.precision import BF16, FP16, get_precision
from argand.softmax.formats import OPERATIONS, REAL_KINDS, Operation, output_kind


def _result(
    operation: Operation,
    arrays: Mapping[str, Spec | None],
    options: Mapping[str, Any],
    on_gpu: bool,
) -> Spec:
    x = arrays["x"]
    assert x is not None
    precision = options.get("precision")
    if precision is None:
        precision = default_precision("softmax", (x,), on_gpu=on_gpu)
    kind = output_kind(get_precision(precision), options.get("output"))
    dtype: Any = "bfloat16" if kind == BF16.name else np.dtype(REAL_KINDS[kind])
    if operation != "logsumexp":
        return Spec(x.shape, dtype)
    axis = options.get("axis", -1) % len(x.shape)
    return Spec((*x.shape[:axis], *x.shape[axis + 1 :]), dtype)


def _gradient(
    operation: Operation, softmax: Callable[..., Any], of: Differentiated, grad: Any
) -> dict[str, Any]:
    """Return s y (g - sum(g y)) for y = softmax(s x), s (g - y sum(g)) for its log, s y g for z."""
    options, x = of.options, of.arrays["x"]
    axis = options.get("axis", -1) % len(of.shapes["x"])
    if operation == "softmax":
        y = of.result
        found = y * (grad - (grad * y).sum(axis=axis, keepdims=True))
    elif operation == "log_softmax":
        y = namespace(of.result).exp(of.result)
        found = grad - y * grad.sum(axis=axis, keepdims=True)
    else:
        found = softmax(x, **options) * grad[(slice(None),) * axis + (None,)]
    found = options.get("scale", 1.0) * found
    return {"x": 2 * x * found if options.get("power") else found}


def _reads(
    operation: Operation, options: Mapping[str, Any], _needed: frozenset[str]
) -> frozenset[str]:
    if operation == "logsumexp":
        return frozenset({"x"})
    return frozenset({"x", "result"} if options.get("power") else {"result"})


def _adapted(arrays: dict[str, Any], options: dict[str, Any]) -> None:
    """Give the result the type of arrays of 16 bits, as the frameworks' own softmaxes do.

    Conjugates and negatives have one power, so that what lies in memory is read in their place.
    """
    if options.get("power"):
        arrays["x"], _, _ = stored(arrays["x"])
    if options.get("precision") is None and options.get("output") is None:
        options["output"] = _HALVES.get(str(arrays["x"].dtype).removeprefix("torch."))


@cache
def _calls() -> Any:
    from argand.softmax.gpu import CALLS

    return CALLS


_HALVES = {"float16": FP16.name, "bfloat16": BF16.name}


def rules_by_operation(softmax: Callable[..., Any]) -> Mapping[str, FrameworkRules]:
    """Return the rules of each operation; the gradient of logsumexp calls `argand.softmax`.

    They are in a dict, which torch 2.6 can trace.
    """
    return {
        operation: FrameworkRules(
            partial(_result, operation),
            partial(_gradient, operation, softmax),
            partial(_reads, operation),
            _adapted,
            same_launches=lambda _: True,
            calls=_calls,
        )
        for operation in OPERATIONS
    }
