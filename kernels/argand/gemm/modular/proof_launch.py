"""Launches that prove an exact product on a GPU: Re A'(B' x) = Re C' x modulo a prime."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import cupy
import numpy as np

from argand.device import Device
from argand.gemm.base_address import BaseAddress
from argand.gemm.modular.encode_plan import WARPS
from argand.gemm.modular.launch_order import (
    IMAGE,
    PROOF,
    SUMS,
    VECTOR,
    KernelLaunch,
    ProofArguments,
)
from argand.gemm.modular.moduli import NORM_BLOCK
from argand.gemm.modular.operand_launch import bound
from argand.gemm.modular.problem import ModularProblem
from argand.gemm.modular.product_plan import COLUMN_BLOCK
from argand.gemm.modular.proof_constants import proof_constants
from argand.gemm.modular.proof_plan import (
    BEGIN_PROOF,
    BEGIN_PROOF_ARGUMENTS,
    END_PROOF,
    END_PROOF_ARGUMENTS,
    IMAGE_ARGUMENTS,
    IMAGE_KERNEL,
    REDUCE_IMAGE,
    REDUCE_IMAGE_ARGUMENTS,
    RESULT_BYTES,
    begin_proof_source,
    end_proof_source,
    image_source,
    image_warps,
    reduce_image_source,
)
from argand.runtime.calls.layout import Layout, is_k_major
from argand.runtime.launch.arguments import Address

_KEY_BYTES = 8
_THREADS = 32 * WARPS
_RESULT = Address(BaseAddress.HOST)
_runtime = cupy.cuda.runtime


class ProofResult:
    """The result of a call's proof and the key of its random numbers, in memory of the host.

    Kernels read and write it at ``address``: copies to a GPU and back would take longer than the
    small launches of a proof.
    """

    def __init__(self) -> None:
        self._memory = cupy.cuda.alloc_pinned_memory(RESULT_BYTES)
        self._words = np.frombuffer(self._memory, np.uint32, RESULT_BYTES // 4)
        self.address = int(self._memory.ptr)

    def begin(self) -> None:
        """Forget the call before, and draw a key."""
        self._words[:2] = 0, ~np.uint32(0)
        self._words[2:] = np.frombuffer(secrets.token_bytes(_KEY_BYTES), np.uint32)

    def wrong(self) -> tuple[int, int]:
        """Return how many rows are wrong and the first of them, once the launches have ended."""
        return int(self._words[0]), int(self._words[1])


_unused: deque[ProofResult] = deque()
"""Results that no call under way has, the last one used, for which there are graphs, first."""


def begin_result() -> ProofResult:
    """Return the memory of a call's result, which `ProofLaunch.wrong` takes back."""
    try:
        found = _unused.pop()
    except IndexError:
        found = ProofResult()
    found.begin()
    return found


class _Lines(NamedTuple):
    """Lines of an operand as they were given: where they and their exponents lie."""

    layout: Layout
    at: Address
    exponents: Address
    batches: int


class ProofLaunch:
    """The launches of one problem's proof, in workspace from ``reserve``.

    ``begin`` comes before all others, ``end`` after them. Where a kernel that encodes B adds B' x
    (``b_encodes``) it takes `of_b`. Where a product's B' x is complete before its A is encoded
    (``a_encodes``), `image` comes between, and the kernel that encodes A takes `of_a`.
    """

    def __init__(
        self, problem: ModularProblem, device: Device, reserve: Callable[[int], Address],
        *, b_encodes: bool, a_encodes: bool,
    ) -> None:  # fmt: skip
        self._problem, self._device = problem, device
        self._b_encodes, self._a_encodes = b_encodes, a_encodes
        self._columns = -(-problem.b.rows // COLUMN_BLOCK) * COLUMN_BLOCK
        self._images = problem.batch if problem.b.batch_stride else 1
        self._rows = problem.batch * problem.a.rows
        self._x, self._scaled_x = reserve(8 * self._columns), reserve(8 * self._columns)
        # A register of each lane for 16 bytes of each row of a block.
        self._fragments = reserve(4 * 2 * self._columns)
        self._image = reserve(16 * self._images * problem.a.columns)
        # The numbers of a product's B' x, and those in whole blocks of k.
        self._words, self._vector_words = 2 * problem.a.columns, 2 * NORM_BLOCK * problem.k_blocks
        self._vector = reserve(4 * self._images * self._vector_words)
        self._sums = reserve(8 * self._rows)
        self._parts: list[str] = []

    def begin(self) -> KernelLaunch:
        """Return the launch that makes x and clears the sums."""
        image, sums = 2 * self._images * self._problem.a.columns, self._rows
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
            "result": _RESULT, "x": self._x, "scaled_x": self._scaled_x,
            "fragments": self._fragments, "image": self._image, "sums": self._sums,
        }, writes=(PROOF, IMAGE))  # fmt: skip

    def _part(self, of: str) -> str:
        """Return the name among launches of what a kernel adds to the sums."""
        self._parts.append(f"{SUMS} of {of}")
        return self._parts[-1]

    def _sums_of(self, product: int, row: int) -> Address:
        base, offset = self._sums
        return Address(base, offset + 8 * (product * self._problem.a.rows + row))

    def _of_product(
        self, x: Address, word: int, pitch: int, product: int, first: int = 0
    ) -> Address:
        """Return where a product's part of B' x is from a word on: ``pitch`` of ``word`` bytes."""
        words = pitch * product * (self._images > 1) + first
        return Address(x.base, x.offset + word * words)

    def of_decode(self, product: int, row: int, column: int) -> ProofArguments:
        """Return the arguments of the kernel that decodes from a product, a row and a column on."""
        members = {
            "proof_fragments": self._fragments, "proof_scaled_x": self._scaled_x,
            "proof_sums": self._sums_of(product, row),
        }  # fmt: skip
        return ProofArguments({}, members, (PROOF,), (self._part(f"C {product} {row} {column}"),))

    def of_b(self, product: int, k: int) -> ProofArguments | None:
        """Return the arguments of the kernel that encodes B from a product and k on, or None."""
        if not self._b_encodes:
            return None
        members = {
            "vector": self._x,
            "sums": self._of_product(self._image, 8, self._words, product, k),
        }
        return ProofArguments({"sum_batch": self._words}, members, (PROOF,), (IMAGE,))

    def of_a(self, product: int, row: int, k: int) -> ProofArguments | None:
        """Return the arguments of the kernel that encodes A from a product, row and k, or None."""
        if not self._a_encodes:
            return None
        batch = self._vector_words // 2 if self._problem.b.batch_stride else 0
        return ProofArguments(
            {"vector_batch": batch, "sum_batch": self._problem.a.rows},
            {
                "vector": self._of_product(self._vector, 4, self._vector_words, product, 2 * k),
                "sums": self._sums_of(product, row),
            },
            (VECTOR,), (self._part(f"A {product} {row} {k}"),),
        )  # fmt: skip

    def image(
        self, product: int, products: int, k: int, exponents: Address, encoded: str
    ) -> Iterator[KernelLaunch]:
        """Yield the launches between the encoding of some products' B from k on and of their A.

        ``encoded`` names what encoding B writes, the exponents among it.
        """
        if not self._a_encodes:
            return
        products = products if self._problem.b.batch_stride else 1
        if not self._b_encodes and k == 0:
            yield self._image_of(product, products, exponents, (encoded,))
        words = products * self._words
        kernel = bound(
            self._device, reduce_image_source(), REDUCE_IMAGE, -(-words // _THREADS), _THREADS,
            REDUCE_IMAGE_ARGUMENTS,
            {
                "words": words, "k": self._problem.a.columns,
                "vector_pitch": self._vector_words,
            },
        )  # fmt: skip
        yield KernelLaunch(kernel, {
            "image": self._of_product(self._image, 8, self._words, product),
            "vector": self._of_product(self._vector, 4, self._vector_words, product),
        }, reads=(IMAGE,), writes=(VECTOR,))  # fmt: skip

    def _image_of(
        self, product: int, products: int, exponents: Address, reads: tuple[str, ...]
    ) -> KernelLaunch:
        """Return the launch that adds B' x of some products."""
        problem, batched = self._problem, bool(self._problem.b.batch_stride)
        x = Address(BaseAddress.COLUMNS, product * problem.b.batch_stride * problem.b.item)
        exponents = Address(
            exponents.base, exponents.offset + 4 * problem.b.rows * product * batched
        )
        return self._multiply(
            _Lines(problem.b, x, exponents, products),
            self._of_product(self._image, 8, self._words, product),
            {
                "vector_batch": 0, "sum_batch": self._words * batched,
                "conjugate": problem.conjugate_b,
            },
            reads, IMAGE, lines_summed=True,
        )  # fmt: skip

    def end(self, a_exponents: Address, b_exponents: Address) -> Iterator[KernelLaunch]:
        """Yield the launches that do what encoding does not, and count the rows that differ."""
        problem, sums = self._problem, tuple(self._parts)
        if not (self._a_encodes or self._b_encodes):
            yield self._image_of(0, self._images, b_exponents, sums)
        if not self._a_encodes:
            yield self._multiply(
                _Lines(problem.a, Address(BaseAddress.ROWS), a_exponents, problem.batch),
                self._sums,
                {
                    "vector_batch": self._words if problem.b.batch_stride else 0,
                    "sum_batch": problem.a.rows, "conjugate": problem.conjugate_a,
                },
                (IMAGE, *sums), SUMS, lines_summed=False,
            )  # fmt: skip
        kernel = bound(
            self._device, end_proof_source(), END_PROOF, -(-self._rows // _THREADS), _THREADS,
            END_PROOF_ARGUMENTS, {"rows": self._rows},
        )  # fmt: skip
        members = {"sums": self._sums, "result": _RESULT}
        yield KernelLaunch(kernel, members, reads=(*sums, SUMS), writes=(PROOF,))

    def _multiply(
        self, lines: _Lines, sums: Address, values: dict[str, int | float],
        reads: tuple[str, ...], part: str, *, lines_summed: bool,
    ) -> KernelLaunch:  # fmt: skip
        """Return the launch that multiplies lines by a vector, and adds the products to sums.

        With ``lines_summed`` the vector is x and each sum one over lines, B' x; else it is that,
        and each sum one of a line.
        """
        x, batches = lines.layout, lines.batches
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
            "x": lines.at, "exponents": lines.exponents, "column": self._x, "vector": self._image,
            "sums": sums,
        }, reads=(PROOF, *reads), writes=(part,))  # fmt: skip

    def wrong(self, result: ProofResult, stream: int) -> tuple[int, int]:
        """Wait for the launches. Returns how many rows are wrong, and the first of them."""
        # Where waiting is interrupted they may still write it, so no other call gets it.
        _runtime.streamSynchronize(stream)
        found = result.wrong()
        _unused.append(result)
        return found
