"""Every kernel of gates compiles without a GPU and without spills, and what no plan may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, Arch
from argand.gates.canonical import permuted
from argand.gates.heuristics import GateTraits, mma_plans, plan_gate
from argand.gates.matrix_source import SOURCES, matrix_kernel_name, matrix_source, matrix_values
from argand.gates.plan import MAX_WIDTH, GatePlan, check_gate_plan, widest_mma
from argand.gates.source import argument_values, gate_source, kernel_name
from argand.runtime.plan import PlanError

from tests.kernels.compiled import ARCHS, Candidate, Kernels, assert_clean, offered, refused

MANY = 1 << 20


def plans(precision: str, arch: Arch) -> Iterator[GatePlan]:
    """Every plan that gates take at a precision on an architecture, each once."""
    row, seen = PRECISIONS[precision], set()
    for width in range(1, MAX_WIDTH + 1):
        for targets_qubit0, monomial, near in product((False, True), repeat=3):
            sizes = (1, 1 << (11 - width), 1 << 10, MANY)
            for columns, low in (*product(sizes, [()]), (MANY, (1,))):
                traits = GateTraits(width, columns, targets_qubit0, monomial, int(near), low)
                plan = plan_gate(traits, row, arch, 1)
                if plan is not None and plan not in seen:
                    seen.add(plan)
                    yield plan


# The widest gates take the most registers, and these kernels as many as a thread has.
FULL = ("fma", "wgmma")


def kernels() -> Iterator[Candidate]:
    """Every plan; kernels without tensor cores are the same at every precision of complex64."""
    for precision, arch in offered(PRECISIONS):
        row = PRECISIONS[precision]
        for plan in plans(precision, arch):
            if plan.on_tensor_cores or precision in ("fp32", "fp64"):
                kernel = plan.kind, plan.targets_qubit0, arch.target, row.terms, row.scaled
                is_full = plan.kind in FULL and plan.width == MAX_WIDTH
                yield Candidate(precision, arch, plan, traits=(("full", is_full and kernel),))


KERNELS = Kernels(kernels)


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_gate(arch: Arch, precision: str) -> None:
    for plan in (candidate.plan for candidate in KERNELS.of(precision, arch)):
        check_gate_plan(plan, arch)
        assert_clean(gate_source(plan), arch.target, kernel_name(plan))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_kinds_of_kernels(arch: Arch, precision: str) -> None:
    if refused(precision, arch):
        return
    tensor = set() if PRECISIONS[precision].exact_operands else {"mma", "direct_mma"}
    if PRECISIONS[precision].operand.bytes == 1:
        tensor.discard("direct_mma")  # an MMA takes k of 5 qubits
    if arch.target == "sm_90a" and (
        PRECISIONS[precision].operand.bytes == 2 or precision == "tf32"
    ):
        tensor.add("wgmma")
    found = {plan.kind for plan in plans(precision, arch)}
    direct = {"direct"} if PRECISIONS[precision].output == "complex64" else set()
    assert found == {"fma", "permute", "small"} | direct | tensor


@pytest.mark.parametrize("arch_row", ARCHITECTURES, ids=lambda row: row.target)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_architecture_has_plans(arch_row: Arch, precision: str) -> None:
    if refused(precision, arch_row):
        return
    for plan in plans(precision, arch_row):
        check_gate_plan(plan, arch_row)
        assert plan.shared_bytes <= arch_row.shared_bytes
        assert plan.kind in ("small", "direct", "direct_mma") or plan.stages >= 2
        assert plan.tile_bytes == plan.item * plan.columns << plan.width


def test_small_states_need_no_tiles_and_large_ones_where_splits_take_long() -> None:
    def planned(
        precision: str, width: int, columns: int, target: str = "sm_90a", piece: int = 128
    ) -> str:
        traits = GateTraits(width, columns, piece=piece)
        plan = plan_gate(traits, PRECISIONS[precision], ARCHS[target], 132)
        assert plan is not None
        return plan.kind

    most = 132 * 2**18  # amplitudes
    for name, width in (("3xfp16", 4), ("fp16", 5), ("tf32", 4)):
        assert planned(name, width, most >> width) == "direct_mma"
        assert planned(name, width, (most >> width) + 1) == "mma"
        assert planned(name, width, MANY, piece=256) == "direct_mma"
    for name, width in (("3xtf32", 5), ("tf32", 6)):
        assert planned(name, width, MANY, "sm_80") == "direct_mma"
    assert {planned(name, 6, 64) for name in ("3xfp16", "tf32")} == {"wgmma"}


def test_fewer_blocks_copy_states_that_l2_does_not_hold() -> None:
    def most_blocks(qubits: int, width: int) -> int:
        traits = GateTraits(width, 1 << (qubits - width))
        plan = plan_gate(traits, PRECISIONS["tf32"], ARCHS["sm_90a"], 132)
        assert plan is not None
        return plan.most_blocks

    assert [most_blocks(qubits, 4) for qubits in (22, 23, 25, 26)] == [0, 5, 5, 0]
    assert [most_blocks(qubits, 5) for qubits in (22, 23)] == [0, 3]


def test_a_third_block_takes_6_qubits_of_smaller_states() -> None:
    """Where each block has tiles enough for its load of the matrix."""

    def blocks(qubits: int) -> int:
        traits = GateTraits(6, 1 << (qubits - 6))
        plan = plan_gate(traits, PRECISIONS["3xfp16"], ARCHS["sm_90a"], 132)
        assert plan is not None
        return plan.blocks

    assert [blocks(qubits) for qubits in (20, 21, 22, 24, 25)] == [2, 2, 3, 3, 2]


def test_which_gates_are_products_of_gemm() -> None:
    arch = ARCHS["sm_90a"]

    def planned(precision: str, width: int) -> bool:
        return plan_gate(GateTraits(width, MANY), PRECISIONS[precision], arch, 1) is not None

    assert [planned("3xfp16", width) for width in (7, 8)] == [True, False]
    assert [planned("3xtf32", width) for width in (6, 7)] == [True, False]
    assert [planned("fp64", width) for width in (7, 8)] == [True, False]
    assert widest_mma(PRECISIONS["tf32"]) == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 8}, "width must be 1 to 7, got 8"),
        ({"width": 3}, "width must be 4 to 7 for mma"),
        ({"kind": "wgmma", "width": 5}, "width must be 6 to 7 for wgmma"),
        ({"precision": PRECISIONS["fp32"]}, "no tensor-core products"),
        ({"kind": "wgmma", "precision": PRECISIONS["3xtf32"], "width": 6}, "one term of tf32"),
        ({"precision": PRECISIONS["3xtf32"], "width": 7}, "width must be 4 to 6"),
        ({"stages": 1}, "at least 2"),
        ({"stages": 15}, "bytes of shared memory"),
        ({"kind": "direct_mma", "width": 6}, "width must be 4 to 5 for direct_mma"),
        ({"kind": "direct"}, "direct is for .1, 2, 3. qubits, got 5"),
        (
            {"kind": "direct", "width": 3, "near": 2},
            "one target of qubits 0 to 2, got complex64, 2",
        ),
        (
            {"kind": "fma", "precision": PRECISIONS["fp64"], "targets_qubit0": True},
            "one complex128",
        ),
    ],
)
def test_an_illegal_plan_says_why(change: dict[str, object], message: str) -> None:
    arch = ARCHS["sm_90a"]
    *_, plan = mma_plans(PRECISIONS["3xfp16"], arch, width=5, targets_qubit0=False)
    assert plan.kind == "mma"
    with pytest.raises(PlanError, match=message):
        check_gate_plan(replace(plan, **change), arch)  # type: ignore[arg-type]


def test_warpgroups_need_hopper() -> None:
    plans = mma_plans(PRECISIONS["3xfp16"], ARCHS["sm_90a"], width=6, targets_qubit0=False)
    plan = next(plan for plan in plans if plan.kind == "wgmma")
    with pytest.raises(PlanError, match="wgmma needs sm_90a"):
        check_gate_plan(plan, ARCHS["sm_80"])


def test_arguments_are_filled_up() -> None:
    values = argument_values({"tiles": 3, "row_mask": [1, 2]})
    assert values["tiles"] == 3
    assert values["row_mask"] == (1, 2, 0, 0, 0, 0, 0)
    assert values["state"] == 0


@pytest.mark.each_value
@pytest.mark.parametrize("precision", ["3xfp16", "bf16", "tf32", "fp64"])
def test_matrices_on_the_gpu_are_prepared(arch: Arch, precision: str) -> None:
    every = {(plan.packs_terms, plan.reads_fragments): plan for plan in plans(precision, arch)}
    for plan, source in product(every.values(), SOURCES):
        assert_clean(matrix_source(plan), arch.target, matrix_kernel_name(plan, source))


def test_the_bits_of_a_matrix_go_to_their_targets() -> None:
    plan = plan_gate(GateTraits(3, MANY), PRECISIONS["fp32"], ARCHS["sm_90a"], 1)
    assert plan is not None
    matrix = np.arange(64).reshape(8, 8)
    targets = (7, 2, 5)
    values = matrix_values(plan, targets, (8, 1))
    bits = [values["positions"] >> 4 * bit & 15 for bit in range(3)]
    rows = [sum((row >> bit & 1) << bits[bit] for bit in range(3)) for row in range(8)]
    np.testing.assert_array_equal(matrix[np.ix_(rows, rows)], permuted(matrix, np.argsort(targets)))
