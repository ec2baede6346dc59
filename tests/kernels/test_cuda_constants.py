"""Constants that stand in CUDA C++ and in Python have one value, and derived values of plans too.

Constants of herk, modular products and filter banks are asserted by the sources of their kernels.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.sm80.source import mma_source
from argand.gemm.sm80.tiles import mma_tiles, one_tile_of, with_copies
from argand.gemm.sm90.legality import check_wgmma_plan
from argand.gemm.sm90.plan import ALIGNMENT, WORK_QUEUE_BYTES, Storage, WgmmaPlan
from argand.gemm.sm90.source import wgmma_source
from argand.gemm.sm90.tiles import wgmma_tiles
from argand.runtime.compile.compiler import compile_cubin
from argand.runtime.compile.nvrtc import CompileError
from argand.runtime.plan import is_legal

from tests.kernels.gemm.plans_in_cuda import compile_plans, plan_in_cuda
from tests.kernels.precisions import TENSOR

CONSTANTS: dict[str, dict[str, str]] = {
    "gemm/sm90_plan.cuh": {
        "kWarp": "multiprocessor.WARP",
        "kWarpgroupThreads": "multiprocessor.WARPGROUP",
        "kWgmmaM": "gemm.sm90.plan.WGMMA_M",
        "kSwizzleBytes": "gemm.sm90.plan.SWIZZLE_BYTES",
        "kStoreBoxSide": "gemm.sm90.plan.STORE_BOX_SIDE",
        "kRasterGroupM": "gemm.sm90.scheduler._RASTER_GROUP_M",
        "kFewTileColumns": "gemm.sm90.scheduler._FEW_TILE_COLUMNS",
    },
    "gemm/sm90_fused_pack.cuh": {
        "kPackBlockK": "gemm.sm90.fused_pack._BLOCK_K",
        "kPackWarps": "gemm.sm90.fused_pack._WARPS",
        "kPackTileElements": "gemm.pack.plan.TILE",
        "kPackThreads": "gemm.pack.plan.THREADS",
        "kMaxPackRows": "gemm.pack.plan._ROWS",
    },
    "gemm/fma_kernel.cuh": {
        "kRowPadding": "gemm.sm80.plan.ROW_PADDING",
        "FmaPlan::kWarps": "gemm.fma.plan._WARPS",
    },
    "gemm/absmax_kernel.cuh": {"kAbsmaxWarps * kWarp": "gemm.absmax_source.ABSMAX_THREADS"},
    "gemm/splitk_reduce.cuh": {"kReduceThreads": "gemm.sm90.splitk_source.REDUCE_THREADS"},
    "gemm/modular/norms.cuh": {
        "kNormThreads": "gemm.modular.encode_plan.NORM_THREADS",
        "kExponentWarps": "gemm.modular.encode_plan.EXPONENT_WARPS",
    },
    "gemm/modular/encode.cuh": {
        "kAcrossBytes": "gemm.modular.encode_plan.ACROSS_BYTES",
        "kAcrossGroup": "gemm.modular.encode_plan.ACROSS_GROUP",
    },
    "gemm/modular/proof_image.cuh": {
        "kImageTerms<true>": "gemm.modular.proof_plan.LANES_TERMS",
        "kImageSums<true>": "gemm.modular.proof_plan.LANES_SUMS",
        "kImageTerms<false>": "gemm.modular.proof_plan.OWN_TERMS",
        "kImageSums<false>": "gemm.modular.proof_plan.OWN_SUMS",
    },
    "readout/sample_kernels.cuh": {
        "kSampleThreads": "readout.source.THREADS",
        "kBlockCells": "readout.source.BLOCK_CELLS",
        "kScanThreads": "readout.source.SCAN_THREADS",
    },
    "readout/marginal_kernels.cuh": {
        "kMarginalThreads": "readout.source.THREADS",
        "kMarginalChunks": "readout.source.MARGINAL_CHUNKS",
        "kMaxSegments": "readout.source.MAX_SEGMENTS",
        "kMaxChosen": "readout.source.MAX_CHOSEN",
    },
    "readout/pauli_kernels.cuh": {
        "kPauliThreads": "readout.source.PAULI_THREADS",
        "kRegisterBits": "readout.source.REGISTER_BITS",
        "kLaneBits": "readout.source.LANE_BITS",
        "kLaneFlips": "readout.source.LANE_FLIPS",
        "kMaxStrings": "readout.source.MAX_STRINGS",
        "kMaxRuns": "readout.source.MAX_RUNS",
    },
    "softmax/exchange.cuh": {"kMaxEpilogueStages": "softmax.plan.MAX_EPILOGUE_STAGES"},
    "softmax/ring_storage.cuh": {"kMaxLoadStages": "softmax.plan.MAX_LOAD_STAGES"},
    "softmax/slab_kernel.cuh": {"kChunk": "softmax.plan._GRAIN_BYTES"},
    "gates/tile.cuh": {
        "kMaxSegments": "gates.source._MAX_SEGMENTS",
        "kMaxThreadBits": "gates.source._MAX_THREAD_BITS",
        "kMaxChunks": "gates.layout.MAX_CHUNKS",
        "kMaxWidth": "gates.plan.MAX_WIDTH",
    },
    "gates/matrix_kernel.cuh": {
        "kMatrixWarps * kWarp": "gates.matrix_source.MATRIX_THREADS",
        "kCoreColumns": "gates.operands.CORE_COLUMNS",
    },
    "gates/sequence_tile.cuh": {
        "kPhaseBits": "gates.sequence_plan.PHASE_QUBITS",
        "kOutsideQubits": "gates.sequence_plan.OUTSIDE_QUBITS",
        "kMaxProducts": "gates.sequence_plan.MAX_PRODUCTS",
        "kMaxGates": "gates.sequence_plan.MAX_GATES",
    },
    "gates/trajectory_kernel.cuh": {
        "kTrajectoryThreads": "gates.trajectory_source.THREADS",
        "kMaxOperationWidth": "gates.trajectory_source.MAX_WIDTH",
    },
    "beam_power/sm90_weights.cuh": {"kWeightRowBytes": "beam_power.sm90_plan.WEIGHT_ROW_BYTES"},
    "beam_power/pack_kernel.cuh": {"kPackThreads": "beam_power.plan.PACK_THREADS"},
    "image/check_kernel.cuh": {"kCheckThreads": "image.check_and_sum_source.CHECK_THREADS"},
    "image/pack_kernel.cuh": {"kPackThreads": "image.plan.PACK_THREADS"},
    "image/sum_kernel.cuh": {"kSumThreads": "image.check_and_sum_source.SUM_THREADS"},
    "solve/back_substitution.cuh": {
        "kUpperThreads": "solve.whole_plan.UPPER_THREADS",
        "kUpperRows": "solve.whole_plan.UPPER_ROWS",
    },
    "solve/residual.cuh": {
        "kResidualThreads": "solve.whole_plan.PRODUCT_THREADS",
        "kMeasureThreads": "solve.whole_plan.MEASURE_THREADS",
        "kResidualTile": "solve.whole_plan.PRODUCT_TILE",
    },
    "solve/system_columns.cuh": {
        "kCopyThreads": "solve.whole_plan.COPY_THREADS",
        "kCopyTile": "solve.whole_plan.COPY_TILE",
    },
    "dft/scale.cuh": {"kScaledByThread * 256": "dft.scale.SCALED_BY_BLOCK"},
}
"""By header: expressions of CUDA C++, and the names in argand that have their values."""


def value_of(name: str) -> object:
    module, _, constant = name.rpartition(".")
    return getattr(import_module(f"argand.{module}"), constant)


def asserted(header: str, checks: list[str]) -> str:
    lines = "".join(f'static_assert({check}, "{check}");\n' for check in checks)
    return f'#include "{header}"\n{lines}extern "C" __global__ void f() {{}}'


@pytest.mark.parametrize("header", CONSTANTS)
def test_cuda_and_python_have_one_value(header: str) -> None:
    checks = [f"{cuda} == {value_of(name)}" for cuda, name in CONSTANTS[header].items()]
    compile_cubin(asserted(header, checks), "sm_90a")


def test_another_value_does_not_compile() -> None:
    with pytest.raises(CompileError, match="kRasterGroupM == 17"):
        compile_cubin(asserted("gemm/sm90_plan.cuh", ["kRasterGroupM == 17"]), "sm_90a")


HOPPER, HEADER = arch_for(90), "gemm/sm90_ring.cuh"
STORAGES: tuple[Storage, ...] = ("fp32", "half", "planar")


def legal_tiles() -> list[tuple[str, WgmmaPlan]]:
    """Every tile with every storage that a precision has, k being the row operand's fast axis."""
    found = []
    for name in TENSOR:
        for storage in STORAGES:
            for tile in wgmma_tiles(PRECISIONS[name], storage):
                plan = replace(tile, k_major=storage != "planar")
                if is_legal(check_wgmma_plan, plan, PRECISIONS[name], HOPPER):
                    found.append((name, plan))
    return found


@pytest.mark.parametrize("precision", TENSOR)
def test_cuda_lays_a_stage_out_alike(
    precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path))
    row, plans = PRECISIONS[precision], []
    for plan in (plan for name, plan in legal_tiles() if name == precision):
        checks = [
            f"kPlan.block_m() == {plan.block_m}",
            f"kPlan.threads() == {plan.threads}",
            f"kPlan.mma_k() == {row.operand.mma_k}",
            f"kPlan.box_row_bytes() == {plan.box_row_bytes(row)}",
            f"kPlan.boxes() == {plan.block_k // plan.box_k(row)}",
            f"kPlan.x_element_bytes() == {plan.x_element_bytes(row)}",
            f"kPlan.x_swizzle_elements() == {plan.x_swizzle_elements(row)}",
            f"kPlan.stage_bytes() == {plan.stage_bytes(row)}",
            f"kWorkSlots * kWorkSlotBytes == {WORK_QUEUE_BYTES}",
        ]
        for more in ({}, {"tma_epilogue": True}, {"cluster": 5}, {"fused_pack": True}):
            one = replace(plan, **more)
            end = f"Ring<kPlan>(0, 0).work_slot(0) + {WORK_QUEUE_BYTES + ALIGNMENT}"
            whole = f"{end} == {one.shared_bytes(row)}"
            plans.append(plan_in_cuda(wgmma_source(row, one), whole))
        plans.append(plan_in_cuda(wgmma_source(row, plan), *checks))
    compile_plans(HEADER, plans)


def test_a_stage_that_cuda_lays_out_otherwise_does_not_compile() -> None:
    wrong = plan_in_cuda(
        wgmma_source(PRECISIONS["tf32"], WgmmaPlan(2, 128, 32, 3)), "kPlan.stage_bytes() == 65537"
    )
    with pytest.raises(CompileError, match="stage_bytes"):
        compile_plans(HEADER, [wrong])


@pytest.mark.parametrize("precision", ["tf32", "3xtf32"])
def test_cuda_derives_a_plan_of_mma_sync_alike(precision: str) -> None:
    """Sums of small products, which the estimate of registers counts, above all."""
    row, plans, seen = PRECISIONS[precision], [], set()
    for tile in (*mma_tiles(row, HOPPER), *one_tile_of(row, HOPPER, 16)):
        slices = [replace(tile, cluster=n) for n in (1, 2)]
        for one, k in product(slices, (8, 64, 97, 128, 200, 10_000)):
            plan = with_copies(one, row, HOPPER, k)
            again = "kPlan.small_apart() && kPlan.whole_k > kPlan.promoted_k()"
            seen.add((plan.small_apart, plan.promoted_again))
            plans.append(plan_in_cuda(
                mma_source(row, plan),
                f"kPlan.threads() == {plan.threads}",
                f"kPlan.small_apart() == {str(plan.small_apart).lower()}",
                f"({again}) == {str(plan.promoted_again).lower()}",
            ))  # fmt: skip
    whole = {(False, False), (True, False), (True, True)}
    assert seen == (whole if row.terms > 1 else {(False, False)})
    compile_plans("gemm/sm80_plan.cuh", plans)
