"""Launches that turn an operand of an exact product into residues: norms, exponents, planes."""

from __future__ import annotations

from collections.abc import Callable

from argand.device import Device
from argand.gemm.base_address import BaseAddress
from argand.gemm.modular.encode_choice import choose_encode_plan
from argand.gemm.modular.encode_plan import (
    ACROSS_BYTES,
    ACROSS_GROUP,
    EXPONENT_WARPS,
    HELD,
    WARPS,
    norm_lines,
    norm_threads,
)
from argand.gemm.modular.kernel_sources import (
    ENCODE_ARGUMENTS,
    ENCODE_KERNEL,
    EXPONENT_ARGUMENTS,
    EXPONENT_KERNEL,
    NORM_ARGUMENTS,
    NORM_KERNELS,
    encode_kernel_source,
    exponent_source,
    is_narrow,
    norm_source,
)
from argand.gemm.modular.launch_order import KernelLaunch, ProofArguments
from argand.gemm.modular.moduli import moduli
from argand.gemm.modular.problem import ModularProblem
from argand.gemm.modular.scaling import normal_limit
from argand.gemm.workspace import aligned
from argand.runtime.calls.layout import Layout
from argand.runtime.launch.arguments import Address, Fields
from argand.runtime.launch.kernel import BoundKernel, bound_kernel

_FEW_BLOCKS = 32
"""Blocks of a line whose norms a warp reads at once."""


def bound(
    device: Device,
    source: str,
    name: str,
    blocks: int,
    threads: int,
    fields: Fields,
    values: dict[str, int | float],
    shared_bytes: int = 0,
) -> BoundKernel:
    """Return a launch whose addresses are yet to be set, of a kernel of exact products."""
    return bound_kernel(
        source, f"modular_{name}", blocks, threads, fields, device, values, shared_bytes
    )


class OperandLaunch:
    """The launches for one operand.

    ``exponents`` are those of its lines, in workspace from ``reserve``. Lines that a CTA can hold
    are read once, by the launch that encodes them; else, and where lines are encoded
    ``in_parts`` of k, launches before it find the exponents.
    """

    def __init__(
        self,
        problem: ModularProblem,
        x: Layout,
        base: BaseAddress,
        device: Device,
        reserve: Callable[[int], Address],
        *,
        permuted: bool,
        in_parts: bool = False,
    ) -> None:
        self._problem, self._x, self._base, self._device = problem, x, base, device
        self._permuted = permuted
        self._batches = problem.batch if x.batch_stride else 1
        #: Exponents of a product; 0 where products share the operand.
        self.lines = x.rows if x.batch_stride else 0
        self.exponents = reserve(4 * self._batches * x.rows)
        squared = moduli(problem.count).largest_squared_norm(x.columns)
        if not squared:
            raise ValueError(f"k = {x.columns} is too long for {problem.count} moduli")
        self._limit: dict[str, int | float] = dict(
            zip(("limit", "limit_shift"), normal_limit(squared), strict=True)
        )
        self._k_blocks = problem.k_blocks
        self._plan = choose_encode_plan(
            problem.dtype, x, problem.k_blocks, device.require_arch(), in_parts=in_parts,
            wide=not is_narrow(problem.dtype, problem.count), proved=problem.proved is not None,
        )  # fmt: skip
        self._norms: Address | None = None
        if self._plan.reading not in HELD:
            self._norms = reserve(8 * self._batches * x.rows * self._k_blocks)
        #: Whether encoding holds transposed lines, so that it can add B' x of a proof.
        self.transposes = self._plan.reading in ("clustered lines", "across lines")
        # Else each warp that encodes reads the norms of all blocks of its line.
        self._exponents_known = in_parts or (
            self._norms is not None and self._k_blocks > _FEW_BLOCKS
        )

    def _strides(self, problem: ModularProblem) -> dict[str, int | float]:
        x = self._x
        return {
            "line_stride": x.row_stride, "k_stride": x.column_stride,
            "batch_stride": x.batch_stride, "k": problem.a.columns, "k_blocks": problem.k_blocks,
        }  # fmt: skip

    def norms(self) -> list[KernelLaunch]:
        """Return the launches before encoding: norms of blocks, exponents of long lines."""
        if self._norms is None:
            return []
        x, along_k = self._x, self._plan.reading == "along k"
        source = norm_source(self._problem.dtype, along_k=along_k)
        work, lines = self._batches * self._k_blocks, norm_lines(x.item)
        blocks = -(-work * x.rows // WARPS) if along_k else work * -(-x.rows // lines)
        sizes = {"lines": x.rows, "batches": self._batches}
        norms = bound(
            self._device, source, NORM_KERNELS[along_k], blocks,
            norm_threads(along_k=along_k), NORM_ARGUMENTS, self._strides(self._problem) | sizes,
        )  # fmt: skip
        members = {"x": Address(self._base), "norms": self._norms}
        found = [KernelLaunch(norms, members, writes=(self.name("norms"),))]
        if self._exponents_known:
            kernel = bound(
                self._device, exponent_source(), EXPONENT_KERNEL,
                self._batches * -(-x.rows // 32), 32 * EXPONENT_WARPS, EXPONENT_ARGUMENTS,
                self._limit | {"lines": x.rows, "k_blocks": self._k_blocks},
            )  # fmt: skip
            members = {"norms": self._norms, "exponents": self.exponents}
            found.append(KernelLaunch(kernel, members, writes=(self.name("norms"),)))
        return found

    def encode(
        self, product: int, products: int, line: int, lines: int, stored: int, planes: Address,
        proof: ProofArguments | None = None, part: tuple[int, ModularProblem] | None = None,
    ) -> KernelLaunch:  # fmt: skip
        """Return the launch that stores the planes of some products and lines of each.

        ``stored`` lines of a plane are written, those from ``lines`` on with zeros. Where products
        share the operand it is encoded once. ``proof`` is what the kernel does for a proof,
        ``part`` a part of k.
        """
        x, plan = self._x, self._plan
        first_k, problem = part or (0, self._problem)
        product, products = (product, products) if x.batch_stride else (0, 1)
        source = encode_kernel_source(
            problem.dtype, problem.count, plan, permuted=self._permuted, proved=proof is not None
        )
        kernel = bound(
            self._device, source, ENCODE_KERNEL,
            self._encode_blocks(products, stored, problem.k_blocks), plan.threads, ENCODE_ARGUMENTS,
            self._strides(problem) | self._limit | {
                "lines": lines, "stored_lines": stored, "batches": products, "first_line": line,
                "pitch": problem.pitch, "known": self._exponents_known,
                "exponent_lines": x.rows,
                "conjugate": problem.conjugate_b if self._permuted else problem.conjugate_a,
                "vector_batch": 0, "sum_batch": 0, **(proof.values if proof else {}),
            },
            plan.shared_bytes,
        )  # fmt: skip
        members = {
            "x": Address(
                self._base, (product * x.batch_stride + first_k * x.column_stride) * x.item
            ),
            "planes": planes,
            "exponents": self.exponents_of(product), **(proof.members if proof else {}),
        }  # fmt: skip
        if self._norms is not None:
            base, offset = self._norms
            members["norms"] = Address(base, offset + 8 * product * self.lines * self._k_blocks)
        reads = (
            *(() if self._norms is None else (self.name("norms"),)),
            *(proof.reads if proof else ()),
        )
        writes = (self.name("planes"), *(proof.writes if proof else ()))
        return KernelLaunch(kernel, members, reads=reads, writes=writes)

    def _encode_blocks(self, products: int, lines: int, k_blocks: int) -> int:
        """Return the CTAs that encode ``lines`` lines of each product."""
        plan, item = self._plan, self._x.item
        if plan.reading == "whole lines":
            every, resident = products * lines, plan.resident or 1
            # A CTA takes several lines where it holds the next one while it encodes one.
            return min(every, resident * self._device.sm_count) if plan.buffers == 2 else every
        if plan.reading == "clustered lines":
            return products * plan.cluster[0] * -(-lines * item // ACROSS_BYTES)
        work = products * k_blocks
        if plan.reading == "along k":
            return -(-work * lines // WARPS)
        return work * -(-lines // (ACROSS_BYTES // item * ACROSS_GROUP)) * ACROSS_GROUP

    def name(self, part: str) -> str:
        """Return the name, among launches, of a part of the operand's workspace."""
        return f"{part} of {self._base.name}"

    def exponents_of(self, product: int) -> Address:
        """Return where the exponents of a product's lines begin."""
        return Address(self.exponents.base, self.exponents.offset + 4 * product * self.lines)


class GivenPlanes:
    """An operand that is planes already: no launch, and the addresses of what it has."""

    def __init__(self, problem: ModularProblem, x: Layout, base: BaseAddress, stored: int) -> None:
        self.lines = x.rows if x.batch_stride else 0
        self.planes_at = Address(base)
        batches = problem.batch if x.batch_stride else 1
        nbytes = planes_bytes(problem.count, stored, problem.pitch, batches)
        self.exponents = Address(base, nbytes)

    def exponents_of(self, product: int) -> Address:
        """Return where the exponents of a product's lines begin."""
        return Address(self.exponents.base, self.exponents.offset + 4 * product * self.lines)


def planes_bytes(count: int, stored: int, pitch: int, batches: int) -> int:
    """Return the bytes of packed planes of ``stored`` lines; exponents lie after them."""
    return aligned(2 * count * stored * pitch * batches)
