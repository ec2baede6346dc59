"""Options that are no names, and scalars beyond a result's type, are named by calls."""

from __future__ import annotations

import numpy as np
import pytest
from argand import (
    GemmPlan,
    Pairs,
    SoftmaxPlan,
    beam_power,
    gemm,
    herk,
    pack,
    softmax,
    spectrum,
    to_pairs,
)

X = np.eye(4, dtype=np.complex64)


@pytest.mark.parametrize("precision", ["fp32", "3xfp16", "7xint8", None])
def test_scalars_beyond_fp32_are_named(precision: str | None) -> None:
    """They would be infinite in the result's type, and products of them NaN."""
    given = "name precision='fp64', or scale an operand"
    for name, value in (("alpha", 1e39), ("beta", -1e300)):
        with pytest.raises(ValueError, match=f"^{name} must be within the range of fp32.* {given}"):
            herk(X, X, **{name: value}, precision=precision)
        with pytest.raises(ValueError, match=f"^{name} must be within the range of fp32.*{given}"):
            gemm(X, X, X, **{name: 1j * value}, precision=precision)
    assert gemm(X, X, alpha=np.finfo(np.float32).max, precision=precision).max() > 3e38
    assert gemm(X, X, alpha=1e300, precision="fp64")[0, 0] == 1e300
    assert gemm(X.astype(complex), X, alpha=1e300)[0, 0] == 1e300


def test_an_array_is_no_name() -> None:
    """NumPy would say that its truth value is ambiguous."""
    for call, name in (
        (lambda: gemm(X, X, op_b=X), "op_b"),
        (lambda: GemmPlan(X, X, op_a=np.dtype("f4")), "op_a"),
        (lambda: gemm(X, X, output=X, precision="fp32"), "output at fp32"),
        (lambda: gemm(X, X, kernels=X, precision="fp32"), "kernels at fp32"),
        (lambda: herk(X, form=X), "form"),
        (lambda: herk(X, op=X), "op"),
        (lambda: pack(X, "fp16", side=X), "side"),
        (lambda: Pairs(X, X), "format"),
        (lambda: to_pairs(X, X), "format"),
        (lambda: beam_power(X, X, detect=X), "detect"),
        (lambda: spectrum(X[0], length=4, scaling=X), "scaling"),
        (lambda: spectrum(X[0], length=4, detrend=X), "detrend"),
        (lambda: softmax(X.real, output=X), "output"),
        (lambda: SoftmaxPlan(X.real, function=X), "function"),
    ):
        with pytest.raises(ValueError, match=f"{name} must be one of .*, got (array|dtype)"):
            call()
