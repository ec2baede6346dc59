"""Times of first calls, with a clock and calls that need no GPU."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from argand.device import gpus

from benchmarks.first_call import CALLS, FirstCall, prepared, rows_of

SMALL = {
    "gemm": (8, 8, 32), "softmax": (4, 8), "dft": (2, 16), "gate": (9, 5), "solve": (8, 1),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_every_call_is_one_that_the_functions_take(call: FirstCall) -> None:
    """On the CPU, with few elements: operations, precisions and types fit together."""
    found = prepared(FirstCall(call.operation, call.precision, SMALL[call.operation]), np)()
    array = found if isinstance(found, np.ndarray) or found is None else found[0]
    assert array is None or np.isfinite(array).all()


def test_names_tell_calls_apart() -> None:
    assert len({call.name for call in CALLS}) == len(CALLS)


def test_rows_have_the_median_of_cold_and_of_warm_calls_and_with_a_wheel(tmp_path: Path) -> None:
    seconds = iter([3.0, 0.3, 0.7, 1.0, 0.1, 0.5, 2.0, 0.2, 0.6])
    caches: list[Path] = []
    wheel = tmp_path / "kernels.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("argand_cubins/__init__.py", "")

    def measure(call: FirstCall, cache: Path, packages: Path | None) -> float:
        if packages is not None:
            assert (packages / "argand_cubins" / "__init__.py").is_file()
            assert cache not in caches
        elif cache not in caches:
            cache.mkdir()
            caches.append(cache)
            for name in ("a", "b"):
                (cache / f"{name}.cubin").touch()
        return next(seconds)

    call = FirstCall("gemm", "tf32", (1, 2, 3))
    cold, warm, shipped = rows_of(call, "some GPU", 3, wheel, measure)
    assert len(caches) == 3
    assert cold == {
        "operation": "gemm", "precision": "tf32", "sizes": "1x2x3", "device": "some GPU",
        "cache": "cold", "kernels_compiled": 2, "repeats": 3, "seconds": 2.0,
    }  # fmt: skip
    assert (warm["cache"], warm["kernels_compiled"], warm["seconds"]) == ("warm", 0, 0.2)
    assert (shipped["cache"], shipped["kernels_compiled"], shipped["seconds"]) == ("wheel", 0, 0.6)


@pytest.mark.skipif(bool(gpus()), reason="there is a GPU")
def test_without_a_gpu_it_says_so() -> None:
    command = [sys.executable, "-m", "benchmarks.first_call"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "no GPU answers" in run.stderr
