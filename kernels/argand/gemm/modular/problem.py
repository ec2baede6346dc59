"""A problem of exact products, and the pieces of it that a GPU computes at a time.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from argand.gemm.families import Family
from argand.gemm.modular.moduli import NORM_BLOCK
from argand.gemm.modular.product_plan import BLOCK_K, COLUMN_BLOCK
from argand.gemm.problem import GemmProblem

if TYPE_CHECKING:  # its module needs CuPy
    from argand.runtime.calls.layout import Layout

_IMAGE_BYTES = 24
"""Workspace of a proof for each number of B' x."""
_ROW_BYTES = 8
"""Workspace of a proof for each row of C."""
_COLUMN_BYTES = 24
"""Workspace of a proof for each column of C."""
_PROOF_BLOCKS = 8 << 8
"""Workspace that rounding the parts of a proof up to 256 bytes may add."""


class ModularCall(NamedTuple):
    """A call of exact products without its data.

    Attributes:
        problem: the sizes, ops and scalars.
        moduli: the number of moduli.
        family: the family of kernels; None is the device's fastest.
        check: prove the integers, and wait for it.
    """

    problem: GemmProblem
    moduli: int
    family: Family | None
    check: bool


@dataclass(frozen=True)
class ModularProblem:
    """The sizes, layouts and scalars of a call, for arrays at any address.

    ``a`` has the rows of op(A) by k, ``b`` the columns of op(B) as rows by k; a batch stride of 0
    shares the operand. ``c`` is None where beta is 0. ``count`` is that of moduli. ``proved`` says
    that a proof goes with the product: it names A's lines in an error. ``a_packed`` and
    ``b_packed`` say that an operand is planes already.
    """

    dtype: str
    count: int
    batch: int
    a: Layout
    b: Layout
    c: Layout | None
    out: Layout
    conjugate_a: bool
    conjugate_b: bool
    alpha: complex
    beta: complex
    family: Family | None = None
    proved: Literal["row", "column"] | None = None
    a_packed: bool = False
    b_packed: bool = False

    @property
    def pitch(self) -> int:
        """Bytes of a line of planes: k, rounded up to whole stages of the mainloop."""
        return -(-self.a.columns // BLOCK_K) * BLOCK_K

    @property
    def k_blocks(self) -> int:
        """Blocks of k that are encoded, the last one maybe a half."""
        return -(-self.a.columns // NORM_BLOCK)

    @property
    def lines(self) -> int:
        """Rows of all A and columns of all B."""
        return sum(x.rows * (self.batch if x.batch_stride else 1) for x in (self.a, self.b))

    @property
    def nbytes(self) -> int:
        """Bytes of the operands and the result."""
        numbers = self.lines * self.a.columns + self.batch * self.out.rows * self.b.rows
        return self.a.item * numbers

    @property
    def proof_bytes(self) -> int:
        """Most bytes of workspace of a proof: x, B' x, and what is added up for each row."""
        if self.proved is None:
            return 0
        images, columns = self.batch if self.b.batch_stride else 1, self.b.rows + COLUMN_BLOCK
        found = _IMAGE_BYTES * images * NORM_BLOCK * self.k_blocks + _COLUMN_BYTES * columns
        return found + _ROW_BYTES * self.batch * self.a.rows + _PROOF_BLOCKS

    def parts(self, count: int) -> list[tuple[int, ModularProblem]]:
        """Return at most ``count`` parts of k, of whole blocks that are encoded.

        Each is where it begins and the problem of its k.
        """
        k = self.a.columns
        step = -(-self.k_blocks // count) * NORM_BLOCK
        if step >= k:
            return [(0, self)]
        return [(first, self._of_k(min(step, k - first))) for first in range(0, k, step)]

    def _of_k(self, k: int) -> ModularProblem:
        return replace(self, a=replace(self.a, columns=k), b=replace(self.b, columns=k))

    def plane_bytes(self) -> tuple[int, int, int]:
        """Return bytes of workspace: planes of a row of A, of a column of B, and of a residue."""
        planes = 2 * self.count
        line = planes * self.pitch
        return line * (not self.a_packed), line * (not self.b_packed), planes

    def piece_bytes(self, piece: Piece) -> tuple[int, int, int]:
        """Return a piece's bytes of workspace: planes of A and of B, and residues of a slice."""
        of_a, of_b, of_c = self.plane_bytes()
        return (
            of_a * piece.rows * (piece.products if self.a.batch_stride else 1),
            of_b * piece.padded * (piece.products if self.b.batch_stride else 1),
            of_c * piece.products * piece.rows * piece.padded,
        )

    def plane_groups(self, piece: Piece) -> list[tuple[int, int]]:
        """Return the first plane and the number of planes of each group of a piece."""
        planes = 2 * self.count
        each = -(-planes // piece.plane_groups)
        return [(first, min(each, planes - first)) for first in range(0, planes, each)]

    def planes_offset(self, piece: Piece) -> int:
        """Return where planes of A begin behind the beginning of the residues of a piece.

        The residues of one launch end before the planes that it, or a later one, reads.
        """
        plane, residues = piece.rows * self.pitch, piece.rows * piece.padded
        return max(
            (first + count) * residues - first * plane for first, count in self.plane_groups(piece)
        )

    def workspace_bytes(self, piece: Piece) -> int:
        """Return the workspace of a piece's planes and residues, in one slice of k."""
        of_a, of_b, of_c = self.piece_bytes(piece)
        if piece.plane_groups == 1:
            return of_a + of_b + of_c
        return max(of_c, self.planes_offset(piece) + of_a) + of_b


@dataclass(frozen=True)
class Piece:
    """Products of a batch, and rows and columns of them, that are computed at a time.

    Their k is encoded and multiplied in ``k_parts`` parts, whose residues add up. Its planes are
    multiplied in ``plane_groups`` launches; where these are several, the residues of one overwrite
    planes of A that the launches before have read.
    """

    first_product: int
    products: int
    first_row: int
    rows: int
    first_column: int
    columns: int
    k_parts: int = 1
    plane_groups: int = 1

    @property
    def padded(self) -> int:
        """Columns of the residues."""
        return -(-self.columns // COLUMN_BLOCK) * COLUMN_BLOCK

    def rows_of(self, batched: bool) -> tuple[int, ...]:
        """Return the rows of A that it takes, with their products where each has its own A."""
        return self._lines(batched, self.first_row, self.rows)

    def columns_of(self, batched: bool) -> tuple[int, ...]:
        """Return the columns of B that it takes, with their products where each has its own B."""
        return self._lines(batched, self.first_column, self.columns)

    def _lines(self, batched: bool, first: int, lines: int) -> tuple[int, ...]:
        products = (self.first_product, self.products) if batched else ()
        return first, lines, *products
