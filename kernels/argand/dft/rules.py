"""Shape and gradient of a transform, for frameworks that trace and differentiate it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from argand.checks import as_integer
from argand.defaults import default_precision
from argand.frameworks.rules import Differentiated, FrameworkRules, Spec, namespace, stored
from argand.precision import get_precision

_ADJOINT_NORM = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
"""The norm at which the transform of the other sign is the adjoint one."""


def _result(arrays: Mapping[str, Spec | None], options: Mapping[str, Any], on_gpu: bool) -> Spec:
    x = arrays["x"]
    assert x is not None
    shape = list(x.shape)
    n = options.get("n")
    if n is not None:
        shape[options.get("axis", -1)] = as_integer(n, "n")
    precision = options.get("precision")
    if precision is None:
        precision = default_precision("transform", (x,), on_gpu=on_gpu)
    return Spec(tuple(shape), np.dtype(get_precision(precision).output))


def _gradient(of: Differentiated, grad: Any) -> dict[str, Any]:
    """Return the adjoint transform: of the other sign, cut or zero-filled to the length of x."""
    options, shape = dict(of.options), of.shapes["x"]
    axis = options.pop("axis", -1) % len(shape)
    options.pop("n", None)
    norm = _ADJOINT_NORM[options.pop("norm", "backward")]
    inverse = not options.pop("inverse", False)
    found = of.call(grad, axis, inverse=inverse, norm=norm, **options)
    length = shape[axis]
    # Torch computes gradients of a batch at once by this name alone.
    arrays = namespace(found)
    joined = getattr(arrays, "cat", None) or arrays.concatenate
    while found.shape[axis] < length:
        found = joined([found, arrays.zeros_like(found)], axis)
    if found.shape[axis] != length:
        found = found[(*(slice(None),) * axis, slice(0, length))]
    return {"x": found}


def _adapted(arrays: dict[str, Any], options: dict[str, Any]) -> Callable[[Any], None] | None:
    """Read what lies in memory: the transform of a conjugate is the other sign's, conjugated."""
    arrays["x"], negative, conjugate = stored(arrays["x"])
    if not (negative or conjugate):
        return None
    if conjugate:
        norm = options.get("norm", "backward")
        options["inverse"] = not options.get("inverse", False)
        options["norm"] = _ADJOINT_NORM.get(norm, norm)

    def finish(result: Any) -> None:
        if conjugate:
            result.conj_physical_()
        if negative:
            result.neg_()

    return finish


@cache
def _calls() -> Any:
    from argand.dft.gpu import CALLS

    return CALLS


RULES = FrameworkRules(_result, _gradient, lambda *_: frozenset(), _adapted, calls=_calls)
