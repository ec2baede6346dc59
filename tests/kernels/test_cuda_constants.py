"""Constants that stand in CUDA C++ and in Python have one value.

Those of herk, modular products and filter banks are asserted by the sources of their kernels.
"""

from __future__ import annotations

from importlib import import_module

import pytest
from argand.runtime.compile.compiler import compile_cubin
from argand.runtime.compile.nvrtc import CompileError

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
        "kMostSegments": "readout.source.MAX_SEGMENTS",
        "kMostChosen": "readout.source.MAX_CHOSEN",
    },
    "readout/pauli_kernels.cuh": {
        "kPauliThreads": "readout.source.PAULI_THREADS",
        "kRegisterBits": "readout.source.REGISTER_BITS",
        "kLaneBits": "readout.source.LANE_BITS",
        "kLaneFlips": "readout.source.LANE_FLIPS",
        "kMostStrings": "readout.source.MAX_STRINGS",
        "kMostRuns": "readout.source.MAX_RUNS",
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
        "kMostProducts": "gates.sequence_plan.MAX_PRODUCTS",
        "kMostGates": "gates.sequence_plan.MAX_GATES",
    },
    "gates/trajectory_kernel.cuh": {
        "kTrajectoryThreads": "gates.trajectory_source.THREADS",
        "kMostOperationWidth": "gates.trajectory_source.MAX_WIDTH",
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
