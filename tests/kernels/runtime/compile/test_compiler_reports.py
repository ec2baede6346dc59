"""The compiler's reports on kernels: registers, spills, warnings."""

from __future__ import annotations

from pathlib import Path

import pytest
from argand.precision import TF32
from argand.runtime.compile.compiler import compile_cubin, parse_resources, parse_warnings
from argand.runtime.compile.dependent_launch import WAIT_FIRST
from argand.runtime.compile.wgmma import wgmma_function

from tests.kernels.compiled import reads_before_it_waits


def test_resources_are_read_per_kernel() -> None:
    log = (
        "ptxas info    : Compiling entry function 'f' for 'sm_90a'\n"
        "ptxas info    : Function properties for f\n"
        "ptxas         .     8 bytes stack frame, 24 bytes spill stores, 16 bytes spill loads\n"
        "ptxas info    : Used 64 registers, used 1 barriers, 8 bytes cumulative stack size, "
        "512 bytes smem\n"
        "ptxas info    : Function properties for g\n"
        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 9 registers, used 0 barriers\n"
    )
    found = parse_resources(log)
    assert (found["f"].registers, found["f"].spill_stores, found["f"].spill_loads) == (64, 24, 16)
    assert (found["f"].stack, found["f"].shared) == (8, 512)
    assert (found["g"].registers, found["g"].stack, found["g"].shared) == (9, 0, 0)


def test_spills_are_seen(tmp_path: Path) -> None:
    """Tests that allow no spill can fail: here 200 values are live in 32 registers."""
    source = (
        'extern "C" __global__ void __launch_bounds__(1024, 2) f(float* x) {\n'
        "    float v[200];\n"
        "#pragma unroll\n"
        "    for (int i = 0; i < 200; ++i) v[i] = x[i * 1024 + threadIdx.x];\n"
        "    __syncthreads();\n"
        "#pragma unroll\n"
        "    for (int i = 0; i < 200; ++i) x[i * 1024 + threadIdx.x] = v[199 - i] * v[i];\n"
        "}\n"
    )
    found = compile_cubin(source, "sm_80", folder=tmp_path).resources["f"]
    assert found.spill_stores > 0
    assert found.registers <= 32


def test_warnings_are_read_from_their_number_on() -> None:
    log = (
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
        "serialized due to insufficient register resources in function 'f'\n"
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored.\n"
    )
    found = parse_warnings(log)
    assert [text[:7] for text in found] == ["(C7510)", "(C7508)"]
    assert found[0].endswith("in function 'f'")
    assert parse_warnings("ptxas info    : Used 9 registers, used 0 barriers\n") == ()


# So that a test which asks for none can fail: registers handed over without a launch bound,
# and sums that are read while they are being computed.
SLOW_ON_HOPPER = {
    "setmaxnreg": (
        'extern "C" __global__ void f(float* x) {\n'
        '    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");\n'
        "    x[threadIdx.x] = 1.0f;\n"
        "}\n"
    ),
    "warpgroup.wait": (
        '#include "device/warpgroup.cuh"\n'
        f"{wgmma_function(TF32, 8)}"
        'extern "C" __global__ void __launch_bounds__(128, 1) f(float* x, uint64 y, int n) {\n'
        "    float sums[4] = {};\n"
        "    uint32 rows[4] = {1, 2, 3, 4};\n"
        "    wgmma_fence();\n"
        "    for (int i = 0; i < n; ++i) {\n"
        "        wgmma<1>(sums, rows, y, 1);\n"
        "        if (sums[0] > 3.0f) rows[0] = rows[1] + i;\n"
        "    }\n"
        "    wgmma_commit();\n"
        "    wgmma_wait<0>();\n"
        "    for (int i = 0; i < 4; ++i) x[4 * threadIdx.x + i] = sums[i];\n"
        "}\n"
    ),
}


@pytest.mark.parametrize("what", SLOW_ON_HOPPER)
def test_the_assemblers_warnings_are_seen_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path))
    first = compile_cubin(SLOW_ON_HOPPER[what], "sm_90a")
    assert any(what in text for text in first.warnings), first.warnings
    again = compile_cubin(SLOW_ON_HOPPER[what], "sm_90a")
    assert again.cached
    assert again.warnings == first.warnings


@pytest.mark.parametrize("early", [False, True])
def test_a_load_ahead_of_the_wait_is_seen(early: bool) -> None:
    """Compile tests of every operation hold its kernels to this."""
    load = "    float found = *x;\n"
    source = (
        '#include "device/dependent_launch.cuh"\n'
        'extern "C" __global__ void f(volatile float* x, float* y) {\n'
        f"{load if early else ''}{WAIT_FIRST}{'' if early else load}"
        "    *y = found;\n"
        "}\n"
    )
    cubin = compile_cubin(source, "sm_90a").cubin
    assert reads_before_it_waits(cubin) == ([".text.f"] if early else [])
