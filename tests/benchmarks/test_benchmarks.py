"""The benchmarks on the CPU: what they print and write, and what they refuse."""

from __future__ import annotations

import csv
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from argand import PRECISIONS

from benchmarks import gemm, softmax
from workflow.accuracy import softmax_reference
from workflow.records import Record

QUICK = ["--repeats", "3", "--seconds", "0.01", "--device", "cpu"]


@pytest.fixture(autouse=True)
def known_ceilings(monkeypatch: pytest.MonkeyPatch) -> None:
    from argand.ceilings import Ceilings, operand_formats

    found = Ceilings("cpu", 10.0, dict.fromkeys(operand_formats(), 0.1))
    for module in (gemm, softmax):
        monkeypatch.setattr(module, "measure_ceilings", lambda device: found)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        assert tuple(reader.fieldnames or ()) == Record.columns_in_order()
        return list(reader)


def test_gemm_writes_a_verified_row_for_each_candidate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "gemm.csv"
    assert gemm.main(["--shape", "33x20x47", "--batch", "2", "--csv", str(out), *QUICK]) == 0
    found = rows(out)
    assert [(row["implementation"], row["precision"]) for row in found] == [
        *(("argand", name) for name in PRECISIONS), ("numpy", "fp64"), ("numpy", "fp32"),
    ]  # fmt: skip
    for row in found:
        assert row["verified"] == "True", row["reason"]
        assert (row["batch"], row["m"], row["n"], row["k"]) == ("2", "33", "20", "47")
        spent = 1e-6 * float(row["time_us_p50"])
        assert float(row["tflops"]) == pytest.approx(8 * 2 * 33 * 20 * 47 / spent / 1e12)
    numpy_fp32 = found[-1]
    ours = found[1]
    ratio = float(numpy_fp32["time_us_p50"]) / float(ours["time_us_p50"])
    assert float(ours["speedup"]) == pytest.approx(ratio)
    assert capsys.readouterr().out.count("\n") == 1 + len(found)


def test_softmax_writes_a_verified_row_for_each_candidate(tmp_path: Path) -> None:
    out = tmp_path / "softmax.csv"
    arguments = ["--shape", "9x101", "--precisions", "fp32,fp16", "--csv", str(out), *QUICK]
    assert softmax.main(arguments) == 0
    found = rows(out)
    assert [row["implementation"] for row in found] == ["argand", "argand", "scipy"]
    assert all(row["verified"] == "True" for row in found)
    assert {row["rows"] + "x" + row["columns"] for row in found} == {"9x101"}


def test_a_wrong_result_of_ours_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = gemm.gemm

    def wrong(*args: object, **kwargs: object) -> object:
        result = right(*args, **kwargs)
        result[-1, -1] += 1
        return result

    monkeypatch.setattr(gemm, "gemm", wrong)
    assert gemm.main(["--shape", "30x30x30", "--precisions", "fp32", "--peers", "none", *QUICK])
    assert "NO: " in capsys.readouterr().out


def test_an_element_left_unwritten_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "gemm", lambda a, b, precision, out: out)
    assert gemm.main(["--shape", "8x8x8", "--precisions", "fp32", "--peers", "none", *QUICK]) == 1


def test_softmax_sees_what_lies_outside_the_sample(rng: np.random.Generator) -> None:
    x = rng.standard_normal((100, 5)).astype(np.float32)
    sample = np.array([0, 99])
    reference = softmax_reference(x[sample])
    assess = partial(softmax.check, reference, sample, "cpu")
    good = softmax.softmax(x)
    assert assess(good, PRECISIONS["fp32"]).verified
    good[50, 2] = np.nan
    found = assess(good, PRECISIONS["fp32"])
    assert not found.verified
    assert found.reason == "1 elements are not finite"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shape", "4x4"], "shape must be MxNxK"),
        (["--shape", "4x0x4"], "shape must be MxNxK"),
        (["--shape", "4x4x4", "--precisions", "fp8"], "precisions must be of"),
        (["--shape", "4x4x4", "--peers", "mkl"], "peers must be of"),
    ],
)
def test_wrong_arguments_say_what_is_allowed(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        gemm.main(arguments)
    assert message in capsys.readouterr().err


def test_a_peer_that_is_not_here() -> None:
    with pytest.raises(ValueError, match=r"peers must be of \['numpy'\] on this machine"):
        gemm.main(["--shape", "4x4x4", "--peers", "cublas", *QUICK])


def test_neither_pydantic_nor_snakemake_is_needed(root: Path) -> None:
    code = (
        "import sys; sys.modules['pydantic'] = sys.modules['snakemake'] = None;"
        "sys.modules['h5py'] = None; import benchmarks.gemm, benchmarks.softmax"
    )
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)
