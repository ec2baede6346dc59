"""Kernels of an exact product on a GPU, each alone; its product of residues of chosen values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from argand import gemm
from argand.device import gpu
from argand.gemm.base_address import BaseAddress
from argand.gemm.modular.heuristics import choose_plan
from argand.gemm.modular.launch import ModularLaunch
from argand.gemm.modular.launch_order import KernelLaunch
from argand.gemm.modular.moduli import MODULAR_PRECISIONS, moduli
from argand.gemm.modular.problem import ModularProblem
from argand.gemm.modular.product_launch import PieceOperand, product_launch
from argand.runtime.arguments import Address
from argand.runtime.graph import LaunchSequence
from argand.runtime.layout import batched

from benchmarks.exact import KINDS, operand_type
from benchmarks.gemm.shapes import Shape

Call = Callable[[], object]
KERNELS = ("encode B", "encode A", "product", "decode")
"""Kernels of a piece of whole products whose lines are read once."""


def _within(most: int) -> Callable[[Any, int], Any]:
    return lambda x, p: x % (2 * most + 1) - most


RESIDUES: dict[str, Callable[[Any, int], Any]] = {
    "uniform": lambda x, p: x,
    "at most 63": _within(63),
    "at most 15": _within(15),
    "at most 1": _within(1),
    "multiples of 16": lambda x, p: x & -16,
    "0 and more": lambda x, p: abs(x),
    "sorted along k": lambda x, p: _sorted(x),
    "0": lambda x, p: x * 0,
}
"""Residues by name, from uniform ones modulo p."""


def _sorted(x: Any) -> Any:
    x.sort(axis=-1)
    return x


PAIRS = (
    ("uniform", "uniform"), ("at most 63", "at most 63"), ("at most 15", "at most 15"),
    ("at most 1", "at most 1"), ("multiples of 16", "multiples of 16"),
    ("0 and more", "0 and more"), ("uniform", "at most 15"), ("at most 15", "uniform"),
    ("uniform", "sorted along k"), ("0", "0"),
)  # fmt: skip
"""Residues of A and of B."""


class Product:
    """The operands of a call and its launches."""

    def __init__(self, cupy: Any, shape: Shape, precision: str, seed: int = 1) -> None:
        self.cupy, self.shape, self.precision = cupy, shape, precision
        self.device = gpu(cupy.cuda.Device().id)
        dtype = operand_type(precision)
        self.a, self.b = (
            KINDS["normal"](cupy, (*shape.leading, *size), dtype, seed + side)
            for side, size in enumerate(((shape.m, shape.k), (shape.k, shape.n)))
        )
        self.out = cupy.empty((*shape.leading, shape.m, shape.n), dtype)
        a, b, out = (batched(x, shape.leading) for x in (self.a, self.b, self.out))
        self.problem = ModularProblem(
            dtype, MODULAR_PRECISIONS[precision], shape.batch, a.layout, b.transposed.layout, None,
            out.layout, False, False, 1, 0,
        )  # fmt: skip
        self.pieces = ModularLaunch(self.problem, self.device).pieces
        self.piece = self.pieces[0]

    def call(self) -> Call:
        """Return the public function on these operands."""
        return partial(gemm, self.a, self.b, precision=self.precision, out=self.out)

    def nbytes(self, kernel: str) -> int:
        """Return the bytes that a kernel of a piece reads and writes if it does so once."""
        problem, piece, planes = self.problem, self.piece, 2 * self.problem.count
        results, line = piece.rows * piece.padded, problem.a.columns * problem.a.item
        each = {
            "encode A": piece.rows * (line + planes * problem.pitch),
            "encode B": piece.padded * (line + planes * problem.pitch),
            "product": planes * (problem.pitch * (piece.rows + piece.padded) + results),
            "decode": results * (planes + problem.a.item),
        }  # fmt: skip
        return piece.products * each[kernel]

    def call_in_pieces(self, products: int) -> Call:
        """Return the call in pieces of a number of products."""
        planes = 2 * self.problem.count
        rows, columns = self.problem.a.rows, self.problem.b.rows
        each = planes * (self.problem.pitch * (rows + columns) + rows * columns)
        # Half a product more holds what is neither planes nor residues.
        launch = ModularLaunch(self.problem, self.device, products * each + each // 2)
        return partial(launch, self.a.data.ptr, self.b.data.ptr, 0, self.out.data.ptr)

    def kernels(self) -> Iterator[tuple[str, Call]]:
        """Yield each kernel of the first piece alone.

        Raises SystemExit where a call has kernels besides, or pieces that are no whole products.
        """
        launch = ModularLaunch(self.problem, self.device)
        launch(self.a.data.ptr, self.b.data.ptr, 0, self.out.data.ptr)  # which writes arguments
        whole = (self.piece.rows, self.piece.columns) == (self.shape.m, self.shape.n)
        if not whole or len(launch.kernels) != len(KERNELS) * len(self.pieces):
            raise SystemExit(f"{self.shape} takes more kernels than {', '.join(KERNELS)}")
        for name, kernel in zip(KERNELS, launch.kernels[: len(KERNELS)], strict=True):
            yield name, partial(_start, self.cupy, kernel)

    def of_residues(self, kinds: tuple[str, str]) -> Call:
        """Return the product of a piece's planes of residues of two kinds, by a call's plan."""
        problem, piece, cupy = self.problem, self.piece, self.cupy
        planes = 2 * problem.count
        a, b = self._planes(kinds[0], piece.rows, 1), self._planes(kinds[1], piece.padded, 2)
        residues = cupy.empty(planes * piece.products * piece.rows * piece.padded, "int8")
        found = product_launch(
            problem, self.device, choose_plan(problem, piece, self.device), piece, 1,
            PieceOperand(Address(BaseAddress.ROWS), piece.rows, piece.rows, True, ()),
            PieceOperand(Address(BaseAddress.COLUMNS), piece.padded, piece.padded, True, ()),
            Address(BaseAddress.OUT),
        )  # fmt: skip
        sequence = LaunchSequence([found.kernel], partial(_updates, found), [[]])
        addresses = (a.data.ptr, b.data.ptr, 0, residues.data.ptr, 0, 0, 0, 0)

        def call(_: object = (a, b, residues)) -> None:  # which keeps their memory
            sequence(addresses, cupy.cuda.get_current_stream().ptr)

        return call

    def _planes(self, kind: str, lines: int, seed: int) -> Any:
        """Return planes of a piece: (products, planes, lines, pitch) int8."""
        cupy, pitch = self.cupy, self.problem.pitch
        rng = cupy.random.default_rng(seed)
        rows = moduli(self.problem.count).rows
        found = cupy.empty((self.piece.products, 2 * len(rows), lines, pitch), "int8")
        for plane in range(2 * len(rows)):
            p = rows[plane // 2].p
            x = rng.integers(-(p // 2), p // 2 + 1, (self.piece.products, lines, pitch))
            found[:, plane] = RESIDUES[kind](x.astype("int16"), p).astype("int8")
        return found


def _updates(found: KernelLaunch, addresses: Sequence[int]) -> list[Any]:
    return [found.kernel.argument_update(found.members, found.maps, addresses)]


def _start(cupy: Any, kernel: Any) -> None:
    kernel.start(cupy.cuda.get_current_stream().ptr)
