"""Times of the first call of each operation in a new process, with and without compiling.

    python -m benchmarks.first_call --csv docs/data/h200-first-call.csv
    python -m benchmarks.first_call --wheel dist/argand_cubins-0.1.0-py3-none-any.whl

Each call runs in a process of its own, which has imported Argand and holds its operands on the GPU:
once with an empty cache of compiled kernels (cold), then with the one that it has left (warm), and,
given the wheel that `tools.cubins` builds, with an empty cache beside that (wheel). A row has the
median of ``--repeats`` such rounds, each from a new cache, and how many kernels were compiled.
NVRTC keeps what it compiled in the driver's cache, which is switched off in all; CuPy's own cache
stays as it is. Argand's Python is compiled to bytecode before, as pip does when it installs.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import argand
import numpy as np
from argand import apply_gate, dft, gemm, softmax, solve
from argand.device import DeviceError, resolve

from benchmarks.harness.rows import write_rows

Row = dict[str, Any]


@dataclass(frozen=True)
class FirstCall:
    """A call of a public function at a precision, with the sizes of its operands.

    The sizes are m, n, k of a product, rows and columns of softmax and dft, qubits of a state and
    of a gate, and the order of a system with its right-hand sides.
    """

    operation: str
    precision: str
    sizes: tuple[int, ...]

    @property
    def name(self) -> str:
        """The call as the argument of its process."""
        return "/".join([self.operation, self.precision, "x".join(map(str, self.sizes))])


CALLS = (
    *(
        FirstCall("gemm", precision, (size, size, size))
        for precision in ("fp32", "tf32", "3xtf32", "3xfp16", "fp16", "bf16", "7xint8", "16xint8")
        for size in (512, 4096)
    ),
    FirstCall("gemm", "tf32", (512, 512, 131072)),
    FirstCall("gemm", "3xfp16", (512, 512, 131072)),
    *(FirstCall("softmax", precision, (4096, 4096)) for precision in ("fp32", "fp16")),
    *(FirstCall("dft", "3xfp16", (4096, length)) for length in (127, 1000, 1024, 65536)),
    *(FirstCall("gate", precision, (24, 5)) for precision in ("fp32", "3xfp16")),
    FirstCall("solve", "fp64", (2048, 1)),
)
"""Each operation at sizes that take different kernels."""


def prepared(call: FirstCall, xp: Any) -> Callable[[], Any]:
    """Return the call with operands on the device of ``xp``; they are drawn on the host."""
    rng = np.random.default_rng(20260101)

    def draw(*shape: int, kind: str = "complex64") -> Any:
        return xp.asarray((rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(kind))

    precision, sizes = call.precision, call.sizes
    if call.operation == "gemm":
        m, n, k = sizes
        # A row of moduli takes the place of fp64 from 12 moduli on, else of fp32.
        kind = "complex128" if precision == "16xint8" else "complex64"
        return partial(gemm, draw(m, k, kind=kind), draw(k, n, kind=kind), precision=precision)
    if call.operation == "softmax":
        x = xp.asarray(rng.normal(size=sizes).astype(np.float32))
        return partial(softmax, x, precision=precision)
    if call.operation == "dft":
        return partial(dft, draw(*sizes), precision=precision)
    if call.operation == "gate":
        qubits, width = sizes
        matrix = np.linalg.qr(rng.normal(size=(2**width, 2**width)))[0].astype(complex)
        state, targets = draw(1 << qubits), tuple(range(3, 3 + width))
        return partial(apply_gate, state, matrix, targets, precision=precision)
    order, columns = sizes
    return partial(
        solve, draw(order, order, kind="complex128"), draw(order, columns, kind="complex128")
    )


def seconds_of(call: FirstCall) -> float:
    """Return the seconds of the first call in this process, until its result is there."""
    import cupy

    compute = prepared(call, cupy)
    cupy.cuda.Device().synchronize()
    started = time.perf_counter()
    compute()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - started


def in_a_new_process(call: FirstCall, cache: Path, packages: Path | None = None) -> float:
    """Return the seconds of a first call that keeps its kernels in a folder.

    ``packages`` is a folder of Python packages that the process finds too.

    Raises subprocess.CalledProcessError where it fails; what it says goes to this one's stderr.
    """
    command = [sys.executable, "-m", "benchmarks.first_call", "--one", call.name]
    environment = os.environ | {"ARGAND_CACHE": str(cache), "CUDA_CACHE_DISABLE": "1"}
    if packages is not None:
        before = os.environ.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([str(packages), *([before] if before else [])])
    run = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return float(json.loads(run.stdout.splitlines()[-1]))


def rows_of(
    call: FirstCall,
    device: str,
    repeats: int,
    wheel: Path | None = None,
    measure: Callable[[FirstCall, Path, Path | None], float] = in_a_new_process,
) -> list[Row]:
    """Return the rows of a call, cold and warm, and with the kernels of a wheel."""
    seconds: dict[str, list[float]] = {"cold": [], "warm": []}
    if wheel is not None:
        seconds["wheel"] = []
    compiled: dict[str, int] = {}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="argand-first-call-") as folder:
            packages = None
            for state, found in seconds.items():
                cache = Path(folder) / ("beside" if state == "wheel" else "cache")
                if state == "wheel" and wheel is not None:
                    packages = Path(folder) / "packages"
                    zipfile.ZipFile(wheel).extractall(packages)
                before = len(list(cache.glob("*.cubin")))
                found.append(measure(call, cache, packages))
                compiled[state] = len(list(cache.glob("*.cubin"))) - before
    return [
        {
            "operation": call.operation, "precision": call.precision,
            "sizes": "x".join(map(str, call.sizes)), "device": device, "cache": state,
            "kernels_compiled": compiled[state], "repeats": repeats,
            "seconds": statistics.median(found),
        }
        for state, found in seconds.items()
    ]  # fmt: skip


def main() -> None:
    """Measure all and write the rows, or be one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--csv", type=Path, help="a CSV file for the rows")
    parser.add_argument("--repeats", type=int, default=3, help="new caches for each call")
    parser.add_argument("--only", help="calls of this operation")
    parser.add_argument("--precisions", nargs="+", help="calls at these precisions")
    parser.add_argument("--wheel", type=Path, help="the wheel of `tools.cubins`, for more rows")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        (call,) = (call for call in CALLS if call.name == given.one)
        print(json.dumps(seconds_of(call)))
        return
    try:
        device = resolve("cuda").name
    except DeviceError as error:
        parser.error(str(error))
    chosen = [
        call for call in CALLS
        if given.only in (None, call.operation)
        and (given.precisions is None or call.precision in given.precisions)
    ]  # fmt: skip
    if not chosen:
        there = ", ".join(sorted({f"{call.operation} at {call.precision}" for call in CALLS}))
        parser.error(f"no call of {given.only!r} at {given.precisions}; there are {there}")
    compileall.compile_dir(Path(argand.__file__).parent, quiet=1)
    found: list[Row] = []
    for call in chosen:
        mine = rows_of(call, device, given.repeats, given.wheel)
        found += mine
        states = "; ".join(
            f"{row['cache']} {row['seconds']:6.3f} s, {row['kernels_compiled']} compiled"
            for row in mine
        )
        print(f"{call.name:32} {states}", flush=True)
        if given.csv is not None:
            write_rows(given.csv, found)  # each time, so that a run that is cut leaves its rows


if __name__ == "__main__":
    main()
