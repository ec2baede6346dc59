"""The compact table of a profile: what is asked of Nsight Compute and how its page is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from argand import PRECISIONS

from benchmarks.gemm import ncu_table
from benchmarks.gemm import profiled as profiled_gemm
from benchmarks.gemm.ncu_table import COLUMNS, metrics, read_kernels, table
from benchmarks.gemm.shapes import SUITES, Shape

PAGE = """==PROF== Connected to process 7
"ID","Kernel Name","gpu__time_duration.sum","launch__registers_per_thread",\
"launch__shared_mem_per_block",\
"sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",\
"lts__t_bytes.sum.per_second","dram__bytes_read.sum",\
"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio",\
"smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio"
"","","ns","register/thread","byte/block","%","byte/s","byte","inst","inst"
"0","gemm_tf32(Arguments)","1,412,000","168","229,376","95.04","7.1e12","5,000,000,000","0.5","3.25"
"1","gemm_pack","40,600","32","0","n/a","","n/a","0.1",""
"""


def test_a_line_a_kernel() -> None:
    header, product, packing = table([("tf32 4096x4096x4096", PAGE)])
    assert header.split(" | ") == list(COLUMNS)
    assert product.split(" | ") == [
        "tf32 4096x4096x4096", "gemm_tf32", "1412.0", "168", "224.0", "95.0", "-", "7.10", "-",
        "5000", "-", "-", "gmma 3.25, wait 0.50",
    ]  # fmt: skip
    assert packing.split(" | ")[1:6] == ["gemm_pack", "40.6", "32", "0.0", "-"]


def test_what_is_read_is_what_is_asked_for() -> None:
    ((_, found), _) = read_kernels(PAGE)
    assert set(found) <= set(metrics())
    assert len(metrics()) == len(set(metrics()))


def test_another_text_is_no_page() -> None:
    with pytest.raises(ValueError, match="no raw page of Nsight Compute, got '==ERROR== none'"):
        read_kernels("==ERROR== none")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.csv"
    page.write_text(PAGE)
    assert ncu_table.main([f"bf16 8x8x8={page}"]) == 0
    assert capsys.readouterr().out.count("bf16 8x8x8") == 2
    assert ncu_table.main([]) == 0
    assert capsys.readouterr().out.split() == metrics()


def test_what_is_profiled_is_measured_too(capsys: pytest.CaptureFixture[str]) -> None:
    """The shell script reads these lines; each is a row of the benchmark of products."""
    assert profiled_gemm.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(set(lines)) == len(profiled_gemm.CASES)
    for line in lines:
        precision, shape = line.split(" ")
        assert not PRECISIONS[precision].exact_operands
        assert Shape.parse(shape) in SUITES["gemm"]
