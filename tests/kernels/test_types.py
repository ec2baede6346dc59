"""Types of calls, as type checkers see them: results have the library of their operands."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import argand
import pytest

CALLS = '''
import numpy as np
from typing import Any, Literal, assert_type
from numpy.typing import NDArray
from scipy import fft
import argand

class Tensor:
    """An array of another library."""
    shape: tuple[int, ...]
    dtype: Any

class TorchType:
    """As torch.float16 is."""
    is_complex = False

Half = Literal["complex-half"]

def held(x: NDArray[np.complex64], t: Tensor, p: argand.Pairs, output: Half) -> None:
    assert_type(argand.gemm(x, x, op_b="C"), NDArray[Any])
    assert_type(argand.gemm(t, t, precision=np.float16), Tensor)
    assert_type(argand.gemm(p, p, output=output), Any)
    assert_type(argand.gemm(t, t, precision=TorchType()), Tensor)
    assert_type(argand.GemmPlan(t, t, precision=np.float16), argand.GemmPlan[Tensor])
    assert_type(argand.GemmPlan(t, t)(t, t, out=t), Tensor)
    assert_type(argand.GemmPlan(p, p, output=output)(p, p), Any)
    assert_type(argand.DftPlan(x, 0)(x), NDArray[Any])
    assert_type(argand.SoftmaxPlan.load("plan.json", t)(t), Any)
    assert_type(argand.softmax(t, axis=0), Tensor)
    assert_type(argand.solve(x, x), NDArray[Any])
    assert_type(argand.dft([1.0, 2.0]), Any)
    assert_type(argand.pack(x, "fp16"), argand.Packed)
    circuit = argand.plan_circuit(2, [argand.Gate(x, [0]), (x, (1,)), (x, (1,), (0,))])
    assert_type(argand.PreparedCircuit(circuit, t)(t), Tensor)
    argand.expectation(x, ["ZZ", ("XX", 0.5), {"pauli": "YY", "coefficient": 2}])
    with fft.set_backend(argand.fft_backend):
        pass
    argand.gemm(x, x, op_a="H")  # refused
    argand.dft(x, length=3)  # refused
    argand.softmax(x, axis="last")  # refused
    argand.DftPlan(x, length=3)  # refused
    argand.DftPlan(x)(x, n=3)  # refused
'''


REFUSED = {number for number, line in enumerate(CALLS.splitlines(), 1) if "# refused" in line}


@pytest.mark.exhaustive
def test_mypy_holds_calls_to_the_stub(tmp_path: Path) -> None:
    """`make lint` holds our own calls to it, in every file; here are those of another project."""
    (tmp_path / "calls.py").write_text(CALLS)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "calls.py"], cwd=tmp_path,
        env={"MYPYPATH": str(Path(argand.__file__).parents[1])}, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    said = re.findall(r"^calls\.py:(\d+): error", done.stdout, re.MULTILINE)
    assert set(map(int, said)) == REFUSED, done.stdout + done.stderr


@pytest.mark.exhaustive
def test_pyright_holds_calls_to_the_stub(tmp_path: Path) -> None:
    """Where it is installed: it is a program of Node.js, which no lock brings."""
    program = shutil.which("pyright") or shutil.which("basedpyright")
    if program is None:
        pytest.skip("pyright is not installed")
    (tmp_path / "calls.py").write_text(CALLS)
    settings = {"typeCheckingMode": "standard", "include": ["calls.py"],
                "extraPaths": [str(Path(argand.__file__).parents[1])]}  # fmt: skip
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [program, "--pythonpath", sys.executable], cwd=tmp_path, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    said = re.findall(r"calls\.py:(\d+):\d+ - error", done.stdout)
    assert set(map(int, said)) == REFUSED, done.stdout + done.stderr


@pytest.mark.exhaustive
def test_the_stub_has_the_signatures_of_run_time() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "argand.typing", "argand"],
        env={"MYPYPATH": str(Path(argand.__file__).parents[1])}, text=True, capture_output=True,
        check=False, cwd="/",
    )  # fmt: skip
    about = [line for line in done.stdout.splitlines() if line.startswith("error: argand.")]
    ours = [line for line in about if line.split()[1].count(".") == 1]
    assert ours == [], done.stdout[-3000:]
