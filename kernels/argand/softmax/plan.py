"""How a softmax runs on a GPU: the form, the plan, what is legal. Needs no GPU and no CuPy."""

from __future__ import annotations

from dataclasses import dataclass, replace

from argand.device import Arch
from argand.precision import Precision
from argand.runtime.plan import PlanError
from argand.softmax.formats import COMPLEX_KINDS, ELEMENT_BYTES, HALF_KINDS, Operation

WARP = 32
LARGEST_BLOCK = 1024
LARGEST_CLUSTER = 16
PORTABLE_CLUSTER = 8
"""A kernel of larger clusters has to ask for them."""
CLUSTER_SM = 90
SMALL_BLOCK = 128
"""Threads of a block whose warps have rows of their own."""
_SHARED_BYTES = 228 * 1024
_BOARD_BYTES = 4 * 1024
"""What a block takes beside what it stages, the system's kilobyte included."""
MOST_STAGES, MOST_LAG = 8, 4
_GRAIN_BYTES, _LINE = 16, 8
_LINE_BYTES = _LINE * _GRAIN_BYTES
"""Accesses, or pieces of 16 bytes in a ring, in a line of memory: at one a block's part begins."""
_MOST_RING_WORDS = 64
_TURNS, _FINDING_BYTES = 2 * MOST_LAG, 16
"""Of ``cuda/softmax/exchange.cuh``, as the most of both above."""
_LARGEST_RESIDENT = 2048
"""Threads of a multiprocessor."""
_REGISTERS = 64 * 1024
"""Of a multiprocessor; a thread's are handed out in eights."""


@dataclass(frozen=True)
class SoftmaxForm:
    """What a kernel is made for: the operation, the kinds of x and out, the precision.

    ``vector`` is how many values one memory access takes, ``edges`` whether rows may begin or end
    within such a vector, ``unit`` whether the scale of the exponents is 1.
    """

    operation: Operation
    input: str
    output: str
    precision: Precision
    vector: int
    edges: bool
    unit: bool = True

    @property
    def wide(self) -> bool:
        """Whether it is computed in fp64."""
        return self.precision.real_output == "float64"

    @property
    def packed(self) -> bool:
        """Whether values stay in 16 bits in registers: those that came so and are not rounded."""
        return self.input in HALF_KINDS and self.precision.exact_operands and not self.wide

    @property
    def value_bytes(self) -> int:
        """What a value takes in registers."""
        return 8 if self.wide else 2 if self.packed else 4


@dataclass(frozen=True)
class SoftmaxPlan:
    """Which threads share a row and what they hold of it.

    Attributes:
        row_threads: of one block. Up to 32 lanes of a warp have a row of their own each; more
            threads are the block.
        block_threads: of a block; of a ring with the warps that hold no values.
        values: that a thread holds at a time.
        cluster: blocks that share a row: a cluster, of a ring from anywhere.
        resident: the threads hold a whole row, which is then read once.
        staged: and take row after row, while the next is copied into shared memory.
        blocks: of a multiprocessor at a time; registers are limited for that many.
        stages: rows on their way into a block's shared memory; 0 where it is no ring.
        lag: of a ring, rows that wait there for their sums.
        slice: of a ring, columns of a row that a block has.
        watched: of a ring, every lane arrives at its barriers, as compute-sanitizer wants to see.
    """

    row_threads: int
    block_threads: int
    values: int
    cluster: int
    resident: bool
    staged: bool
    blocks: int
    stages: int = 0
    lag: int = 0
    slice: int = 0
    watched: bool = False

    @property
    def ring(self) -> bool:
        """Whether rows wait in shared memory for their sums."""
        return self.stages > 0

    @property
    def how(self) -> str:
        """How rows are held: ring, staged, resident or streamed."""
        if self.ring:
            return "ring"
        return "staged" if self.staged else "resident" if self.resident else "streamed"

    def shared_bytes(self, form: SoftmaxForm) -> int:
        """Dynamic shared memory of a block."""
        if self.ring:
            return (self.stages + self.lag) * stage_bytes(form, self.slice)
        return self.block_threads * self.values * ELEMENT_BYTES[form.input] * self.staged

    @property
    def rows_a_block(self) -> int:
        """Rows that a block works on at a time."""
        return 1 if self.ring else self.block_threads // self.row_threads

    def exchange_bytes(self, teams: int) -> int:
        """Global memory in which so many teams of a ring's blocks tell each other of rows."""
        return teams * (_TURNS * self.cluster * _FINDING_BYTES + 16) * (self.cluster > 1)


def stage_bytes(form: SoftmaxForm, columns: int) -> int:
    """Shared memory of a ring for a slice of so many columns."""
    return -(-columns * ELEMENT_BYTES[form.input] // _LINE_BYTES) * _LINE_BYTES


def check_softmax_plan(plan: SoftmaxPlan, form: SoftmaxForm, arch: Arch) -> None:
    """Raise PlanError for what the kernel cannot be compiled or launched as."""
    threads = plan.row_threads
    if threads < 1 or (threads % WARP if threads > WARP else WARP % threads):
        raise PlanError(f"row_threads must divide 32 or be a multiple of it, got {threads}")
    least = WARP if plan.ring else max(WARP, threads)
    if plan.block_threads % least or plan.block_threads > LARGEST_BLOCK:
        raise PlanError(
            f"block_threads must be a multiple of 32 and of row_threads up to 1024, "
            f"got {plan.block_threads}"
        )
    if plan.ring:
        _check_ring(plan, form, arch)
    elif threads > WARP and plan.block_threads != threads:
        raise PlanError("threads of several warps that share a row must be the block")
    if plan.values % form.vector or plan.values < 2:
        raise PlanError(
            f"values must be a multiple of the vector of {form.vector} and at least 2, "
            f"got {plan.values}"
        )
    if plan.cluster > 1 and (arch.sm < CLUSTER_SM or threads <= WARP):
        raise PlanError(f"clusters need sm_90 and rows of a block, got {plan.cluster}")
    if not plan.ring and (plan.cluster & (plan.cluster - 1) or plan.cluster > LARGEST_CLUSTER):
        raise PlanError(f"cluster must be a power of two up to 16, got {plan.cluster}")
    if not plan.resident and threads <= WARP:
        raise PlanError("rows that are not held whole must have a block's threads")
    if plan.staged:
        _check_staged(plan, form, arch)
    registers = plan.values * form.value_bytes // 4 + _besides(form, plan)
    if registers * plan.block_threads * plan.blocks > _REGISTERS:
        raise PlanError(
            f"{plan.blocks} blocks of {plan.block_threads} threads with {plan.values} values take "
            f"more than {_REGISTERS} registers"
        )


def _check_ring(plan: SoftmaxPlan, form: SoftmaxForm, arch: Arch) -> None:
    if arch.sm < CLUSTER_SM:
        raise PlanError("a ring needs the copy engine of sm_90")
    if form.wide or not form.precision.exact_operands or form.input in COMPLEX_KINDS:
        raise PlanError("a ring takes fp32, fp16 and bf16 as they are, in fp32")
    written = form.input if form.operation == "logsumexp" else form.output
    if form.vector != vector_for(form.input, written):
        raise PlanError(f"a ring needs full accesses, got {form.vector} values")
    writers = plan.block_threads - ring_block(plan.row_threads, 0, plan.cluster)
    if writers < WARP or writers % WARP or plan.row_threads % writers:
        raise PlanError(
            f"a ring has writers beside 2 or 3 warps and {plan.row_threads} threads that hold "
            f"values, a whole share of them, got {plan.block_threads} threads in all"
        )
    if not plan.resident or plan.staged:
        raise PlanError("a ring holds rows whole, and copies in its own way")
    if plan.values * form.value_bytes > _MOST_RING_WORDS * 4:
        raise PlanError(f"a ring's threads hold at most {_MOST_RING_WORDS} words each")
    if plan.slice > plan.row_threads * plan.values or plan.slice % ring_line(form):
        raise PlanError(
            f"a slice must be a multiple of {ring_line(form)} columns that the threads hold, "
            f"got {plan.slice}"
        )
    if not 2 <= plan.stages <= MOST_STAGES or not 1 <= plan.lag <= MOST_LAG:
        raise PlanError(
            f"a ring has 2 to {MOST_STAGES} stages and a lag of 1 to {MOST_LAG}, "
            f"got {plan.stages} and {plan.lag}"
        )
    if plan.shared_bytes(form) > ring_bytes(arch, plan.blocks):
        raise PlanError(
            f"{plan.stages} + {plan.lag} slices take {plan.shared_bytes(form)} bytes, "
            f"more than a block has"
        )


def ring_block(threads: int, writers: int, cluster: int) -> int:
    """Threads of a ring's block of which so many hold values and so many write.

    Beside them a loader, a teller and, where others share the row, a listener have a warp each.
    """
    return threads + writers + (2 + (cluster > 1)) * WARP


def ring_grain(form: SoftmaxForm) -> int:
    """Columns of which a ring's copies are multiples."""
    return _GRAIN_BYTES // ELEMENT_BYTES[form.input]


def ring_line(form: SoftmaxForm) -> int:
    """Columns of which a ring's slices are multiples."""
    return _LINE * ring_grain(form)


def row_line(form: SoftmaxForm, threads: int) -> int:
    """Columns between the places at which so many threads' parts of a row may begin."""
    return form.vector * (_LINE if threads > WARP else 1)


def check_row(plan: SoftmaxPlan, form: SoftmaxForm, columns: int) -> None:
    """Raise PlanError for a row that is not held whole, or leaves accesses with none of it."""
    least, line = 0, row_line(form, plan.row_threads) if form.edges else 1
    held = plan.row_threads * plan.cluster * plan.values
    if plan.ring:
        line = ring_line(form) if form.edges or ring_grain(form) != form.vector else 1
        held = plan.slice * plan.cluster
    elif plan.rows_a_block == 1:
        # The kernel looks for a row's end in the last two accesses only.
        least = held - 2 * plan.row_threads * plan.cluster * form.vector
    most = held - (line - 1)
    if plan.resident and not least <= columns <= most:
        raise PlanError(f"{plan} holds rows of {least} to {most} columns, got {columns}")


def ring_bytes(arch: Arch, blocks: int) -> int:
    """Shared memory for the stages of a ring with so many blocks a multiprocessor."""
    return (arch.shared_bytes + 1024) // blocks - _BOARD_BYTES


def _check_staged(plan: SoftmaxPlan, form: SoftmaxForm, arch: Arch) -> None:
    if not plan.resident or plan.row_threads <= WARP:
        raise PlanError("rows that are staged must be a block's and held whole")
    access = form.vector * ELEMENT_BYTES[form.input]
    if access not in (8, 16):
        raise PlanError(f"an asynchronous copy must have 8 or 16 bytes, got {access}")
    if plan.shared_bytes(form) + _BOARD_BYTES > arch.shared_bytes:
        raise PlanError(
            f"{plan.block_threads} threads with {plan.values} values stage "
            f"{plan.shared_bytes(form)} bytes, more than a block has"
        )


def vector_for(input_kind: str, output_kind: str) -> int:
    """Values of an access: 16 bytes of the wider of the two elements."""
    return _GRAIN_BYTES // max(ELEMENT_BYTES[input_kind], ELEMENT_BYTES[output_kind])


def is_legal(plan: SoftmaxPlan, form: SoftmaxForm, arch: Arch) -> bool:
    """Whether `check_softmax_plan` accepts a plan."""
    try:
        check_softmax_plan(plan, form, arch)
    except PlanError:
        return False
    return True


def _besides(form: SoftmaxForm, plan: SoftmaxPlan) -> int:
    """Registers a thread beside its values, with which no kernel spills (the tests compile all)."""
    if plan.ring:
        return 42 if not form.packed else 44 if form.output in HALF_KINDS else 58
    plain = form.precision.exact_operands and form.operation == "softmax"
    if form.wide:
        found = 64
    elif plain and form.input not in COMPLEX_KINDS:
        found = (28 if plan.row_threads >= WARP else 32) + (0 if form.unit else 8)
    else:
        found = 44
    if plan.staged:
        return found + (12 if form.precision.exact_operands else 44)
    return found if plan.resident else found + 28


def limited(form: SoftmaxForm, plan: SoftmaxPlan) -> SoftmaxPlan:
    """The plan with as many blocks of a multiprocessor as have the memory they need."""
    words = plan.values * form.value_bytes // 4
    registers = max(32, -(-(words + _besides(form, plan)) // 8) * 8)
    # Warps are dealt out to four schedulers, each with a quarter of the registers.
    warps = 4 * (_REGISTERS // (4 * WARP * registers))
    blocks = min(
        _LARGEST_RESIDENT // plan.block_threads,
        warps // (plan.block_threads // WARP),
        _SHARED_BYTES // (plan.shared_bytes(form) + _BOARD_BYTES),
    )
    return replace(plan, blocks=max(1, blocks))
