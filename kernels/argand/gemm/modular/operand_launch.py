"""Launches that turn an operand of an exact product into residues: norms, exponents, planes."""

from __future__ import annotations

from collections.abc import Callable

from argand.device import Arch, Device
from argand.gemm.base_address import BaseAddress
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
from argand.gemm.modular.product_plan import (
    ACROSS_BYTES,
    ACROSS_GROUP,
    EXPONENT_WARPS,
    FEW_THREADS,
    HELD,
    MANY_THREADS,
    WARPS,
    Reading,
    clustered,
    clustered_bytes,
    encode_threads,
    norm_lines,
    norm_threads,
    whole_line_bytes,
)
from argand.gemm.modular.scaling import normal_limit
from argand.runtime.arguments import Address, Fields
from argand.runtime.kernel import BoundKernel, bound_kernel
from argand.runtime.layout import Layout, is_k_major
from argand.runtime.plan import TARGET

_ALIGNMENT = 16
_CLUSTERED_ITEM = 8
_FEW_BLOCKS = 32
"""Blocks of a line whose norms a warp reads at once."""
PLANES_ALIGNMENT = 256
"""Bytes of which the planes of packed operands take a multiple."""


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
        self._permuted, self._in_parts = permuted, in_parts
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
        self._buffers = self._shared_bytes = 0
        self._cluster: tuple[int, int] | None = None
        self._resident = 1
        self._reading = self._find_reading()
        self._norms: Address | None = None
        if self._reading not in HELD:
            self._norms = reserve(8 * self._batches * x.rows * self._k_blocks)
        #: Whether encoding holds transposed lines, of which it can add B' x of a proof.
        self.transposes = self._reading in ("clustered lines", "across lines")
        # Else each warp that encodes reads the norms of all blocks of its line.
        self._exponents_known = in_parts or (
            self._norms is not None and self._k_blocks > _FEW_BLOCKS
        )

    def _find_reading(self) -> Reading:
        x, arch = self._x, self._device.require_arch()
        if self._in_parts:
            return "along k" if is_k_major(x) else "across lines"
        if not is_k_major(x):
            # 128 bytes hold 8 lines of complex128: exchanging their norms takes longer than reading
            # twice what L2 holds.
            self._cluster = clustered(self._k_blocks) if x.item == _CLUSTERED_ITEM else None
            if self._cluster is None or arch.target != TARGET or x.aligned < x.item:
                return "across lines"
            self._shared_bytes = clustered_bytes(x.item, self._cluster[1])
            return "clustered lines"
        strides = (x.row_stride * x.item, x.batch_stride * x.item)
        aligned = x.aligned >= _ALIGNMENT and not any(stride % _ALIGNMENT for stride in strides)
        self._hold_lines(arch)
        whole = x.column_stride == 1 and aligned and self._buffers and x.row_stride >= 0
        return "whole lines" if whole else "along k"

    def _hold_lines(self, arch: Arch) -> None:
        """Choose how many CTAs of a multiprocessor hold lines, and how many lines each.

        A warp takes a block of a line at a time, so short lines have fewer warps and more CTAs.
        Several CTAs of one line are faster than one CTA of two, which waits at its barriers, but
        more CTAs of 64 registers a thread are only where each holds two.
        """
        short = min(WARPS, self._k_blocks)
        most = encode_threads(
            self._problem.dtype, "whole lines", proved=self._problem.proved is not None,
            wide=not is_narrow(self._problem.dtype, self._problem.count),
        )  # fmt: skip
        for resident in range(most // (32 * short), 0, -1):
            for buffers in (2, 1):
                if buffers == 1 and resident * 32 * short > FEW_THREADS:
                    continue
                nbytes = whole_line_bytes(self._x.item, self._k_blocks, buffers)
                if resident <= arch.resident_blocks(nbytes):
                    self._resident, self._buffers, self._shared_bytes = resident, buffers, nbytes
                    return

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
        x, along_k = self._x, self._reading == "along k"
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
        ``part`` is of k.
        """
        x, reading = self._x, self._reading
        first_k, problem = part or (0, self._problem)
        product, products = (product, products) if x.batch_stride else (0, 1)
        work = products * problem.k_blocks
        across = ACROSS_BYTES // x.item * ACROSS_GROUP
        whole = reading == "whole lines"
        cluster = self._cluster or (1, 1)
        many = self._resident * 32 * min(WARPS, self._k_blocks) > FEW_THREADS
        every = MANY_THREADS if many else FEW_THREADS
        threads = every // self._resident // 32 * 32 if whole else 32 * WARPS
        # A CTA takes several lines where it holds the next one while it encodes one.
        most = self._resident * self._device.sm_count if self._buffers == 2 else products * stored
        blocks = {
            "whole lines": min(products * stored, most),
            "clustered lines": products * cluster[0] * -(-stored * x.item // ACROSS_BYTES),
            "along k": -(-work * stored // WARPS),
            "across lines": work * -(-stored // across) * ACROSS_GROUP,
        }[reading]
        source = encode_kernel_source(
            problem.dtype, problem.count, reading, permuted=self._permuted,
            buffers=max(1, self._buffers), threads=threads, cluster=cluster,
            proved=proof is not None, resident=self._resident if whole else None,
        )  # fmt: skip
        kernel = bound(
            self._device, source, ENCODE_KERNEL, blocks, threads, ENCODE_ARGUMENTS,
            self._strides(problem) | self._limit | {
                "lines": lines, "stored_lines": stored, "batches": products, "first_line": line,
                "pitch": problem.pitch, "known": self._exponents_known,
                "exponent_lines": x.rows,
                "conjugate": problem.conjugate_b if self._permuted else problem.conjugate_a,
                "vector_batch": 0, "sum_batch": 0, **(proof.values if proof else {}),
            },
            self._shared_bytes if reading in HELD else 0,
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
    """Return the bytes of packed planes of ``stored`` lines; exponents lie behind them."""
    return -(-2 * count * stored * pitch * batches // PLANES_ALIGNMENT) * PLANES_ALIGNMENT
