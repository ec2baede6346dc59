"""The benchmarks on the CPU: what they print and write, and what they refuse."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import argand
import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu
from argand.runtime.launch import kernel_trace

from benchmarks.gemm import __main__ as gemm
from benchmarks.gemm import ours as gemm_ours
from benchmarks.gemm.shapes import Shape
from benchmarks.peers import Candidate, CannotRunError, absent, candidates
from benchmarks.softmax import __main__ as softmax
from benchmarks.softmax.check import check
from benchmarks.softmax.ours import candidate
from workflow.accuracy.references import softmax_reference
from workflow.records import NOT_RUN, BenchmarkRecord, Record

QUICK = ["--repeats", "3", "--seconds", "0.01", "--sustain", "0", "--device", "cpu"]
PLAIN = [*QUICK, "--inputs", "complex64", "--peers", "numpy"]
COLUMNS = (
    *Record.columns_in_order(), "input", "output", "host_us", "held", "back_to_back_us",
    "real_tflops", "fraction_of_real", "power_w", "temperature_c",
)  # fmt: skip


pytestmark = pytest.mark.usefixtures("quick_measuring")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        assert tuple(reader.fieldnames or ()) == COLUMNS == BenchmarkRecord.columns_in_order()
        return list(reader)


def test_gemm_writes_a_verified_row_for_each_candidate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "gemm.csv"
    assert gemm.main(["--shape", "2x33x20x47", "--csv", str(out), *PLAIN]) == 0
    found = rows(out)
    assert [(row["implementation"], row["precision"]) for row in found] == [
        *(("argand", name) for name in PRECISIONS), ("numpy", "fp64"), ("numpy", "fp32"),
    ]  # fmt: skip
    for row in found:
        assert row["verified"] == "True", row["reason"]
        assert (row["batch"], row["m"], row["n"], row["k"]) == ("2", "33", "20", "47")
        spent = 1e-6 * float(row["time_us_p50"])
        assert float(row["tflops"]) == pytest.approx(8 * 2 * 33 * 20 * 47 / spent / 1e12)
        assert row["input"] == row["output"] == PRECISIONS[row["precision"]].output
        assert not row["real_tflops"] + row["clock_mhz"] + row["power_w"]  # a CPU reports none
    numpy_fp32 = found[-1]
    ours = found[1]
    ratio = float(numpy_fp32["time_us_p50"]) / float(ours["time_us_p50"])
    assert float(ours["speedup"]) == pytest.approx(ratio)
    assert capsys.readouterr().out.count("\n") == 2 + len(found)


def test_gemm_takes_every_kind_of_operand(tmp_path: Path) -> None:
    out = tmp_path / "gemm.csv"
    arguments = ["--shape", "9x12x30", "--precisions", "3xtf32,bf16", "--peers", "none"]
    assert gemm.main([*arguments, "--csv", str(out), *QUICK]) == 0
    found = rows(out)
    assert all(row["verified"] == "True" for row in found)
    assert {(row["precision"], row["input"], row["output"]) for row in found} == {
        ("3xtf32", "complex64", "complex64"), ("3xtf32", "packed", "complex64"),
        ("bf16", "complex64", "complex64"), ("bf16", "packed", "complex64"),
        ("bf16", "complex-half", "complex64"), ("bf16", "complex-half", "complex-half"),
    }  # fmt: skip


def test_rows_name_the_kernels_that_ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The kernels of the call with these operands; a stand-in launches what a GPU would."""
    original = gemm_ours.gemm

    def named(a: Any, b: Any, **how: Any) -> Any:
        kernel_trace.note(f"kernel for {type(b).__name__}")
        return original(a, b, **how)

    monkeypatch.setattr(gemm_ours, "gemm", named)
    out = tmp_path / "gemm.csv"
    arguments = ["--shape", "9x12x30", "--precisions", "bf16", "--peers", "none"]
    assert gemm.main([*arguments, "--csv", str(out), *QUICK]) == 0
    assert [(row["input"], row["algorithm"]) for row in rows(out)] == [
        ("complex64", "cgemm, kernel for ndarray"), ("packed", "cgemm, kernel for Packed"),
        ("complex-half", "cgemm, kernel for Pairs"), ("complex-half", "cgemm, kernel for Pairs"),
    ]  # fmt: skip


def test_bytes_are_those_of_the_operands_as_they_come() -> None:
    def moved(precision: str, given: str, output: str) -> float:
        row = PRECISIONS[precision]
        one = Candidate("argand", row, "", tuple, tuple, tuple, given, output)
        return gemm.work(Shape(2, 3, 5, batch=7), one).bytes_moved / 7

    assert moved("fp64", "complex128", "complex128") == 16 * (10 + 15 + 6)
    assert moved("tf32", "complex64", "complex64") == 8 * (10 + 15 + 6)
    assert moved("3xtf32", "packed", "complex64") == 8 * 10 + 16 * 15 + 8 * 6
    assert moved("fp16", "complex-half", "complex64") == 4 * (10 + 15) + 8 * 6
    assert moved("bf16", "planar", "complex-half") == 4 * (10 + 15 + 6)


def test_what_cannot_run_is_a_row_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    numpy_fp64 = next(one for one in candidates("gemm", "cpu") if one.name == "numpy")

    def breaks(*_: object) -> None:
        raise RuntimeError("out of paper")

    def here(*_: object) -> list[Candidate]:
        return [absent(numpy_fp64, "it is elsewhere"), replace(numpy_fp64, compute=breaks)]

    monkeypatch.setattr(gemm, "candidates", here)
    out = tmp_path / "gemm.csv"
    arguments = ["--shape", "3x4x5", "--precisions", "fp32", "--csv", str(out)]
    assert gemm.main([*arguments, *QUICK]) == 0
    ours, left_out, broken = rows(out)
    assert ours["verified"] == "True"
    assert left_out["reason"] == f"{NOT_RUN}it is elsewhere"
    assert broken["reason"] == "failed: RuntimeError: out of paper"
    assert left_out["verified"] == broken["verified"] == "False"
    assert not left_out["time_us_p50"] + left_out["tflops"]


def test_an_interrupt_keeps_what_was_measured_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours come after the peers, so that the first of ours has its speedup when it is printed."""
    right = gemm_ours.gemm

    def until_fp32(*args: object, **kwargs: object) -> object:
        if kwargs["precision"] is PRECISIONS["fp32"]:
            raise KeyboardInterrupt
        return right(*args, **kwargs)

    monkeypatch.setattr(gemm_ours, "gemm", until_fp32)
    out = tmp_path / "gemm.csv"
    with pytest.raises(KeyboardInterrupt):
        gemm.main(["--shape", "3x4x5", "--precisions", "fp64,fp32", "--csv", str(out), *PLAIN])
    ours, *peers = rows(out)
    assert (ours["implementation"], ours["precision"]) == ("argand", "fp64")
    assert [row["implementation"] for row in peers] == ["numpy", "numpy"]
    assert ours["verified"] == "True"
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2 + 3
    assert f"{float(ours['speedup']):7.2f}" in printed[-1]


@pytest.mark.parametrize(
    ("error", "status"), [(CannotRunError("no"), 0), (RuntimeError("broken"), 1)]
)
def test_only_what_of_ours_ran_wrongly_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def raises(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(gemm_ours, "gemm", raises)
    arguments = ["--shape", "3x4x5", "--precisions", "fp32", "--peers", "none", *QUICK]
    assert gemm.main(arguments) == status


def test_softmax_writes_a_verified_row_for_each_candidate(tmp_path: Path) -> None:
    out = tmp_path / "softmax.csv"
    arguments = ["--shape", "9x101", "--precisions", "fp32,fp16", "--csv", str(out), *QUICK,
                 "--peers", "scipy"]  # fmt: skip
    assert softmax.main(arguments) == 0
    found = rows(out)
    assert [row["implementation"] for row in found] == ["argand", "argand", "scipy"]
    assert all(row["verified"] == "True" for row in found)
    assert {row["rows"] + "x" + row["columns"] for row in found} == {"9x101"}


def test_a_wrong_result_of_ours_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = gemm_ours.gemm

    def wrong(*args: object, **kwargs: object) -> object:
        result = right(*args, **kwargs)
        result[-1, -1] += 1
        return result

    monkeypatch.setattr(gemm_ours, "gemm", wrong)
    assert gemm.main(["--shape", "30x30x30", "--precisions", "fp32", "--peers", "none", *QUICK])
    assert "NO: " in capsys.readouterr().out


def test_an_element_left_unwritten_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm_ours, "gemm", lambda a, b, precision, out: out)
    assert gemm.main(["--shape", "8x8x8", "--precisions", "fp32", "--peers", "none", *QUICK]) == 1


def test_softmax_sees_what_lies_outside_the_sample(rng: np.random.Generator) -> None:
    x = rng.standard_normal((100, 5)).astype(np.float32)
    sample = np.array([0, 99])
    reference = softmax_reference(x[sample])
    assess = partial(check, reference, sample, "cpu")
    good = argand.softmax(x)
    ours = candidate(PRECISIONS["fp32"], cpu())
    assert assess(good, ours).verified
    good[50, 2] = np.nan
    found = assess(good, ours)
    assert not found.verified
    assert found.reason == "1 elements are not finite"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shape", "4x4"], "shape must be MxNxK"),
        (["--shape", "4x0x4"], "shape must be MxNxK or BATCHxMxNxK"),
        (["--shape", "1x2x3x4x5"], "shape must be MxNxK or BATCHxMxNxK"),
        (["--suite", "lapack"], "invalid choice: 'lapack'"),
        ([], "one of --shape and --suite is needed"),
        (["--shape", "4x4x4", "--precisions", "fp7"], "precisions must be of"),
        (["--shape", "4x4x4", "--peers", "mkl"], "peers must be of"),
    ],
)
def test_wrong_arguments_say_what_is_allowed(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        gemm.main(arguments)
    assert message in capsys.readouterr().err


def test_neither_pydantic_nor_snakemake_is_needed(root: Path) -> None:
    code = (
        "import sys; sys.modules['pydantic'] = sys.modules['snakemake'] = None;"
        "sys.modules['h5py'] = None; import benchmarks.gemm, benchmarks.softmax;"
        "import benchmarks.gemm.roofline, benchmarks.sanitize.gemm"
    )
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)
