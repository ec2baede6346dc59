"""`check=True` on a GPU: right products pass with the same bits, planted faults are seen."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from argand import gemm
from argand.gemm.modular.kernel_sources import ENCODE_KERNEL, PRODUCT_KERNEL
from argand.gemm.modular.proof import WrongProductError
from argand.runtime.compile import loading

from tests.covers import EXHAUSTIVE
from tests.kernels.gemm.modular.test_gpu_modular import (
    COUNTS,
    TYPES,
    modular_launch,
    numbers,
    same_bits,
    smallest_pieces,
)

pytestmark = pytest.mark.gpu
__all__ = ["modular_launch", "smallest_pieces"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", COUNTS if EXHAUSTIVE else (6, 8, 9, 17))
def test_right_products_pass(cp: Any, rng: np.random.Generator, count: int, dtype: Any) -> None:
    for m, n, k in ((150, 141, 300), (3, 257, 1100), (1, 1, 1), (257, 66, 13)):
        a, b = numbers(rng, m, k, dtype=dtype), numbers(rng, k, n, dtype=dtype)
        same_bits(cp, a, b, precision=f"{count}xint8", check=True)


@pytest.mark.parametrize("dtype", TYPES)
def test_ops_batches_scalars_and_layouts(cp: Any, rng: np.random.Generator, dtype: Any) -> None:
    for op_a, op_b in itertools.product("NTC", "NTC"):
        a = numbers(rng, *((2, 40, 150) if op_a == "N" else (2, 150, 40)), dtype=dtype)
        b = numbers(rng, *((150, 50) if op_b == "N" else (50, 150)), dtype=dtype)
        c = numbers(rng, 2, 40, 50, dtype=dtype)
        same_bits(cp, a, b, c, op_a=op_a, op_b=op_b, alpha=0.3 - 2j, beta=1.25j,
                  precision="9xint8", check=True)  # fmt: skip
    a, b = numbers(rng, 2, 1, 40, 128, dtype=dtype), numbers(rng, 3, 128, 30, dtype=dtype)
    same_bits(cp, a, b, precision="7xint8", check=True)
    same_bits(cp, a[0, 0], b, precision="7xint8", check=True)
    left, right = numbers(rng, 60, 70, dtype=dtype), numbers(rng, 70, 40, dtype=dtype)
    out = cp.full((60, 40), np.nan, dtype, order="F")
    gemm(cp.asarray(left), cp.asarray(right), precision="7xint8", check=True, out=out)
    np.testing.assert_array_equal(out.get(), gemm(left, right, precision="7xint8"))


def test_pieces(cp: Any, rng: np.random.Generator, smallest_pieces: None) -> None:
    for shape_a, shape_b in (
        ((60, 90), (90, 700)), ((5, 60, 90), (5, 90, 130)), ((60, 90), (5, 90, 130)),
        ((5, 60, 90), (90, 130)), ((300, 4500), (4500, 40)), ((2, 140, 2500), (2, 2500, 9)),
        ((2, 300, 90), (2, 90, 40)), ((300, 600), (600, 270)), ((2, 140, 300), (2, 300, 150)),
        ((140, 300), (2, 300, 150)), ((2, 140, 90), (90, 150)),
    ):  # fmt: skip
        a, b = (numbers(rng, *shape, dtype="complex64") for shape in (shape_a, shape_b))
        for precision in ("7xint8", "16xint8"):
            same_bits(cp, a, b, precision=precision, check=True)
            # Those of B whose k is contiguous, and those of A whose k is not.
            turned = a.swapaxes(-1, -2).copy(), b.swapaxes(-1, -2).copy()
            same_bits(cp, *turned, op_a="T", op_b="T", precision=precision, check=True)


@pytest.mark.parametrize("dtype", TYPES)
def test_special_values_pass(cp: Any, rng: np.random.Generator, dtype: Any) -> None:
    a, b = numbers(rng, 40, 300, dtype=dtype), numbers(rng, 300, 70, dtype=dtype)
    a[2, 3], b[7, 4] = np.nan, np.inf
    a[5] = 0
    b[:, 6] = 0
    a[8] *= dtype(1e-38)
    b[:, 9] *= dtype(1e30)
    a[10] = b[:, 10] = 1 + 1j  # parallel lines, whose product is as large as can be
    with np.errstate(all="ignore"):
        same_bits(cp, a, b, precision="7xint8", check=True)
        same_bits(cp, a, b, precision="15xint8", check=True)


def plant(
    modular_launch: Any, monkeypatch: pytest.MonkeyPatch, cp: Any, kernel: str, argument: str,
    offset: int, before: int = 0,
) -> None:  # fmt: skip
    """Flip the last bit of what a launch of a kernel leaves at an address of its arguments.

    So many launches of the kernel come ``before``.
    """
    runtime, make = cp.cuda.runtime, loading.load
    functions = []

    def load(source: str, target: str, name: str, *rest: Any) -> Any:
        found = make(source, target, name, *rest)
        if name == f"modular_{kernel}":
            functions.append(found.ptr)
        return found

    monkeypatch.setattr(loading, "load", load)
    from argand.runtime.launch.kernel import BoundKernel  # imports CuPy

    launch = BoundKernel.start
    done: list[bool] = []

    def start(self: Any, stream: int) -> None:
        launch(self, stream)
        if self._kernel.ptr not in functions:
            return
        done.append(True)
        if len(done) != before + 1:
            return
        words, index = self._arguments.word(argument)
        byte = np.empty(1, np.uint8)
        runtime.streamSynchronize(stream)
        at = int(words[index]) + offset
        runtime.memcpy(byte.ctypes.data, at, 1, runtime.memcpyDeviceToHost)
        byte ^= 1
        runtime.memcpy(at, byte.ctypes.data, 1, runtime.memcpyHostToDevice)

    monkeypatch.setattr(BoundKernel, "start", start)


# A kernel, an argument, an offset, launches before; and what is said of 40 rows. The last bit of a
# residue of B changes all of them in which A has no residue 0 there.
FAULTS = {
    "a residue of C": (PRODUCT_KERNEL, "residues", (9 * 40 + 5) * 128 + 17, 0, "1 of 40 .*row 5"),
    "a residue of A": (ENCODE_KERNEL, "planes", (3 * 40 + 5) * 128 + 9, 1, "1 of 40 .*row 5"),
    "a residue of B": (ENCODE_KERNEL, "planes", (3 * 128 + 5) * 128 + 9, 0, "(3.|40) of 40 .*"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_the_last_bit_of_one_residue_is_caught(
    cp: Any, rng: np.random.Generator, modular_launch: Any, monkeypatch: pytest.MonkeyPatch,
    fault: str, dtype: Any,
) -> None:  # fmt: skip
    m, k, n = 40, 100, 90
    a, b = numbers(rng, m, k, dtype=dtype), numbers(rng, k, n, dtype=dtype)
    left, right = cp.asarray(a), cp.asarray(b)
    with monkeypatch.context() as patch:
        *where, said = FAULTS[fault]
        plant(modular_launch, patch, cp, *where)
        out = cp.full((m, n), np.nan, dtype)
        with pytest.raises(WrongProductError, match=said + ": memory or"):
            gemm(left, right, precision="9xint8", check=True, out=out)
    # The next call of the same form is right again.
    gemm(left, right, precision="9xint8", check=True, out=out)
    np.testing.assert_array_equal(out.get(), gemm(a, b, precision="9xint8"))


def test_a_fault_of_one_block_is_caught(
    cp: Any, rng: np.random.Generator, modular_launch: Any, monkeypatch: pytest.MonkeyPatch,
    smallest_pieces: None,
) -> None:  # fmt: skip
    """The last of 2 x 2 x 2 blocks of a batch, whose first row is 128 of the second product."""
    a, b = numbers(rng, 2, 150, 90, dtype="complex64"), numbers(rng, 2, 90, 140, dtype="complex64")
    plant(modular_launch, monkeypatch, cp, PRODUCT_KERNEL, "residues", 128 * 7, 7)
    with pytest.raises(WrongProductError, match=r"1 of 300 rows .*row 285: memory"):
        gemm(cp.asarray(a), cp.asarray(b), precision="7xint8", check=True)


def test_a_fault_of_b_is_caught_in_columns_of_a_result_that_is_stored_by_columns(
    cp: Any, rng: np.random.Generator, modular_launch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = numbers(rng, 40, 90, dtype="complex64"), numbers(rng, 90, 30, dtype="complex64")
    plant(modular_launch, monkeypatch, cp, PRODUCT_KERNEL, "residues", 128 * 7)
    out = cp.full((40, 30), np.nan, "complex64", order="F")
    with pytest.raises(WrongProductError, match=r"1 of 30 columns .*column 7: memory"):
        gemm(cp.asarray(a), cp.asarray(b), precision="7xint8", check=True, out=out)


def test_calls_that_repeat_are_checked_with_other_numbers(
    cp: Any, rng: np.random.Generator
) -> None:
    """Calls that launch a graph, whose addresses stay, are among them."""
    a, b = numbers(rng, 70, 80, dtype="complex64"), numbers(rng, 80, 60, dtype="complex64")
    left, right = cp.asarray(a), cp.asarray(b)
    expected = gemm(a, b, precision="7xint8")
    out = cp.full(expected.shape, np.nan, "complex64")
    for _ in range(8):
        out.fill(np.nan)
        gemm(left, right, precision="7xint8", check=True, out=out)
        np.testing.assert_array_equal(out.get(), expected)


def test_calls_of_threads_at_once_have_verdicts_of_their_own(
    cp: Any, rng: np.random.Generator
) -> None:
    a, b = numbers(rng, 300, 400, dtype="complex64"), numbers(rng, 400, 250, dtype="complex64")
    left, right = cp.asarray(a), cp.asarray(b)
    expected = gemm(a, b, precision="7xint8")

    def call(_: int) -> Any:
        with cp.cuda.Stream(non_blocking=True):
            return [gemm(left, right, precision="7xint8", check=True).get() for _ in range(8)]

    cp.cuda.get_current_stream().synchronize()
    with ThreadPoolExecutor(4) as threads:
        for results in threads.map(call, range(4)):
            for found in results:
                np.testing.assert_array_equal(found, expected)
