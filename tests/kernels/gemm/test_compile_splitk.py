"""The kernel that reduces split-K slices compiles without a GPU."""

from __future__ import annotations

from argand.gemm.splitk_source import REDUCE_KERNEL, reduce_source
from argand.runtime.plan import TARGET

from tests.kernels.compiled import assert_clean


def test_the_reduction_of_split_k_slices() -> None:
    assert_clean(reduce_source(), TARGET, REDUCE_KERNEL)
