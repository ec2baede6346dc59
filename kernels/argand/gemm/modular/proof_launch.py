"""Launches that prove an exact product on a GPU: A'(B' x) = C' x modulo a prime (proof.cuh)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import cupy
import numpy as np

from argand.device import Device
from argand.gemm.modular.launch_order import KernelLaunch
from argand.gemm.modular.operand_launch import bound
from argand.gemm.modular.pieces import ModularProblem
from argand.gemm.modular.product_plan import COLUMN_BLOCK, WARPS
from argand.gemm.modular.proof import wrong_product
from argand.gemm.modular.proof_constants import proof_constants
from argand.gemm.modular.proof_plan import (
    BEGIN_PROOF,
    BEGIN_PROOF_ARGUMENTS,
    END_PROOF,
    END_PROOF_ARGUMENTS,
    IMAGE_ARGUMENTS,
    IMAGE_KERNEL,
    RESULT_BYTES,
    begin_proof_source,
    end_proof_source,
    image_source,
    image_warps,
)
from argand.runtime.arguments import Address, BaseAddress
from argand.runtime.layout import Layout, is_k_major

PROOF, SUMS = "proof", "C' x"
"""Names among launches of x, of the image of B, and of the sums that a decoding kernel adds."""
_KEY_BYTES = 8
_THREADS = 32 * WARPS
_runtime = cupy.cuda.runtime


class ProofLaunch:
    """The launches of one problem's proof, in workspace from ``reserve``.

    ``begin`` comes before any kernel that decodes, ``end`` after all of them: B' x is of all
    columns, and the exponents of a panel are found as it is encoded.
    """

    def __init__(
        self, problem: ModularProblem, device: Device, reserve: Callable[[int], Address]
    ) -> None:
        self._problem, self._device = problem, device
        self._columns = -(-problem.b.rows // COLUMN_BLOCK) * COLUMN_BLOCK
        self._images = problem.batch if problem.b.batch_stride else 1
        self._rows = problem.batch * problem.a.rows
        self._result = reserve(RESULT_BYTES)
        self._x, self._scaled_x = reserve(4 * self._columns), reserve(4 * self._columns)
        # A register of each lane for 16 bytes of each row of a block.
        self._fragments = reserve(4 * 2 * self._columns)
        self._image = reserve(16 * self._images * problem.a.columns)
        self._sums = reserve(16 * self._rows)

    def begin(self) -> KernelLaunch:
        """Return the launch that makes x and clears the sums."""
        image, sums = 2 * self._images * self._problem.a.columns, 2 * self._rows
        work = max(2 * self._columns, image, sums)
        kernel = bound(
            self._device, begin_proof_source(self._problem.dtype), BEGIN_PROOF,
            min(-(-work // _THREADS), 4 * self._device.sm_count), _THREADS, BEGIN_PROOF_ARGUMENTS,
            {
                "image_words": image, "sum_words": sums, "columns": self._columns,
                "scale": proof_constants(self._problem.count).scale,
            },
        )  # fmt: skip
        return KernelLaunch(kernel, {
            "result": self._result, "x": self._x, "scaled_x": self._scaled_x,
            "fragments": self._fragments, "image": self._image, "sums": self._sums,
        }, writes=(PROOF,))  # fmt: skip

    def of_decode(self, product: int) -> dict[str, Address]:
        """Return the addresses that the kernel takes which decodes from a product on."""
        base, offset = self._sums
        return {
            "proof_fragments": self._fragments, "proof_scaled_x": self._scaled_x,
            "proof_sums": Address(base, offset + 16 * product * self._problem.a.rows),
        }  # fmt: skip

    def end(
        self, a_exponents: Address, b_exponents: Address, sums: tuple[str, ...]
    ) -> Iterator[KernelLaunch]:
        """Yield the launches that find B' x, subtract A'(B' x), and count the rows that differ.

        ``sums`` are the parts that decoding writes.
        """
        problem = self._problem
        k = problem.a.columns
        image_batch = 2 * k if problem.b.batch_stride else 0
        yield self._multiply(
            problem.b, BaseAddress.COLUMNS, self._images, b_exponents, self._image,
            {"vector_batch": 0, "sum_batch": image_batch, "conjugate": problem.conjugate_b},
            sums, lines_summed=True,
        )  # fmt: skip
        yield self._multiply(
            problem.a, BaseAddress.ROWS, problem.batch, a_exponents, self._sums,
            {
                "vector_batch": image_batch, "sum_batch": 2 * problem.a.rows,
                "conjugate": problem.conjugate_a,
            },
            (), lines_summed=False,
        )  # fmt: skip
        kernel = bound(
            self._device, end_proof_source(), END_PROOF, -(-self._rows // _THREADS), _THREADS,
            END_PROOF_ARGUMENTS, {"rows": self._rows},
        )  # fmt: skip
        members = {"sums": self._sums, "result": self._result}
        yield KernelLaunch(kernel, members, writes=(PROOF,))

    def _multiply(
        self, x: Layout, base: BaseAddress, batches: int, exponents: Address, sums: Address,
        values: dict[str, int | float], reads: tuple[str, ...], *, lines_summed: bool,
    ) -> KernelLaunch:  # fmt: skip
        lanes_sum = is_k_major(x) != lines_summed
        outs, terms = (x.columns, x.rows) if lines_summed else (x.rows, x.columns)
        warps = batches * image_warps(outs, terms, lanes_sum=lanes_sum)
        source = image_source(
            self._problem.dtype, self._problem.count, lines_summed=lines_summed,
            lanes_sum=lanes_sum,
        )  # fmt: skip
        kernel = bound(
            self._device, source, IMAGE_KERNEL, -(-warps // WARPS), _THREADS, IMAGE_ARGUMENTS,
            values | {
                "line_stride": x.row_stride, "k_stride": x.column_stride,
                "batch_stride": x.batch_stride,
                "exponent_batch": x.rows if x.batch_stride else 0, "lines": x.rows,
                "k": x.columns, "batches": batches,
            },
        )  # fmt: skip
        return KernelLaunch(kernel, {
            "x": Address(base), "exponents": exponents, "reals": self._x, "vector": self._image,
            "sums": sums,
        }, reads=reads, writes=(PROOF,))  # fmt: skip

    def write_key(self, memory: int, stream: int) -> None:
        """Give the workspace at an address the key of a call's random numbers."""
        key = np.frombuffer(secrets.token_bytes(_KEY_BYTES), np.uint64)
        at = memory + self._result.offset + RESULT_BYTES - _KEY_BYTES
        _runtime.memcpyAsync(at, key.ctypes.data, _KEY_BYTES, _runtime.memcpyHostToDevice, stream)

    def check(self, memory: int, stream: int) -> None:
        """Wait for the launches. Raises WrongProductError where a row is wrong."""
        found = np.empty(2, np.uint32)
        _runtime.memcpyAsync(
            found.ctypes.data, memory + self._result.offset, found.nbytes,
            _runtime.memcpyDeviceToHost, stream,
        )  # fmt: skip
        _runtime.streamSynchronize(stream)
        if found[0]:
            name = self._problem.proved or "row"
            raise wrong_product(int(found[0]), self._rows, int(found[1]), name)
