"""Time of the host for a call, in a row of calls through the functions that users call.

    python -m benchmarks.host_times --out docs/data/h200-host-times.csv

Problems are so small that the GPU never has calls waiting: what is measured is Python, CuPy and the
driver. Peers do the same through CuPy, torch and JAX. The time of a call is the median of
``--rows`` rows of ``--calls`` calls, each on the fastest core, after a row that makes what is kept.
Other work of the machine makes calls slower: a record has the host and its load, the processes that
ran then.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from argand import (
    CircuitPlan,
    DftPlan,
    Gate,
    GemmPlan,
    PreparedCircuit,
    SoftmaxPlan,
    apply_gate,
    dft,
    gemm,
    plan_circuit,
    softmax,
)
from argand.device import cpu, gpu

from benchmarks.harness.rows import write_rows
from workflow.versions import timestamp, versions

Row = dict[str, Any]
_QUBITS = 14
_TRANSFORMS = ((64, 1000), (64, 1024), (64, 127), (1, 1 << 18))
"""Rows and length: more rows of the last would have the GPU behind the host."""
_WARMING = 20
"""Calls before each row, by which what a core needs comes into its caches."""
_GRAPHS = {"xla_gpu_graph_min_graph_size": 1}
"""Option by which XLA makes a CUDA graph of less than five operations."""
_PRECISIONS = ("fp32", "tf32", "3xtf32", "3xfp16", "fp16")


def calls(cupy: Any, rng: np.random.Generator) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield operation, implementation and call of each row."""
    from argand.dft.gpu import plan_of

    a, b = (cupy.asarray(_complexes(rng, 64, 64)) for _ in range(2))
    out = cupy.empty_like(a)
    for precision in _PRECISIONS:
        yield f"gemm {precision}", "argand", partial(gemm, a, b, precision=precision)
    wide = [x.astype(np.complex128) for x in (a, b)]
    yield "gemm fp64", "argand", lambda: gemm(*wide)
    yield "gemm 3xfp16, out", "argand", lambda: gemm(a, b, precision="3xfp16", out=out)
    yield "gemm fp32", "cupy", lambda: cupy.matmul(a, b)
    yield "an empty result", "cupy", lambda: cupy.empty((64, 64), np.complex64)
    # A plan's launches serve calls of its form too, so plans come after those.
    product = GemmPlan(a, b, precision="3xfp16")
    yield "gemm 3xfp16, plan", "argand", lambda: product(a, b)
    yield "gemm 3xfp16, plan, out", "argand", lambda: product(a, b, out=out)
    x = cupy.asarray(rng.normal(size=(64, 256)).astype(np.float32))
    held = cupy.empty_like(x)
    yield "softmax fp32", "argand", lambda: softmax(x)
    yield "softmax fp32, out", "argand", lambda: softmax(x, out=held)
    planned = SoftmaxPlan(x)
    yield "softmax fp32, plan, out", "argand", lambda: planned(x, out=held)
    spectra = [cupy.asarray(_complexes(rng, *shape)) for shape in _TRANSFORMS]
    for x in spectra:
        length, how = x.shape[-1], "cuFFT" if plan_of(x).plan is None else "our kernel"
        yield f"dft 3xfp16, {length} ({how})", "argand", partial(dft, x)
    rows, found = spectra[0], cupy.empty_like(spectra[0])
    transforms = DftPlan(rows)
    yield "dft 3xfp16, 1000 (cuFFT), plan, out", "argand", lambda: transforms(rows, out=found)
    yield "dft fp32", "argand", lambda: dft(rows, precision="fp32")
    yield "dft fp32, inverse", "argand", lambda: dft(rows, precision="fp32", inverse=True)
    yield "dft fp32", "cupy", lambda: cupy.fft.fft(rows)
    state = cupy.asarray(_complexes(rng, 1 << _QUBITS))
    for width in range(1, 8):
        matrix = np.linalg.qr(_complexes(rng, 2**width, 2**width).astype(complex))[0]
        targets = tuple(range(3, 3 + width))
        yield (
            f"gate of {width} qubits", "argand",
            partial(apply_gate, state, matrix, targets),
        )  # fmt: skip
        there = cupy.asarray(matrix)
        yield (
            f"gate of {width} qubits, matrix on the GPU", "argand",
            partial(apply_gate, state, there, targets),
        )  # fmt: skip
    circuit = _one_pass(rng)
    prepared = PreparedCircuit(circuit, state)
    yield "circuit of one pass, prepared", "argand", lambda: prepared(state)
    yield from _torchs(rng)
    yield from _jaxs(rng)


def _torchs(rng: np.random.Generator) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield name, implementation and call of torch's operations, where it is installed."""
    try:
        import torch
    except ImportError:
        return
    a, b = (torch.asarray(_complexes(rng, 64, 64)).cuda() for _ in range(2))
    yield "gemm fp32", "torch", lambda: torch.matmul(a, b)
    yield "an empty result", "torch", lambda: torch.empty_like(a)
    library = torch.library.Library("argand_benchmarks", "DEF")
    library.define("nothing(Tensor a, Tensor b) -> Tensor")
    library.impl("nothing", lambda a, b: torch.empty_like(a), "CUDA")
    nothing = torch.ops.argand_benchmarks.nothing
    yield "an empty result, operator of torch", "torch", lambda: nothing(a, b)
    x = torch.asarray(rng.normal(size=(64, 256)).astype(np.float32)).cuda()
    yield "softmax fp32", "torch", lambda: torch.softmax(x, -1)
    rows = torch.asarray(_complexes(rng, 64, 1000)).cuda()
    yield "dft fp32", "torch", lambda: torch.fft.fft(rows)
    yield "dft fp32, inverse", "torch", lambda: torch.fft.ifft(rows)
    yield "gemm 3xtf32, tensors", "argand", lambda: gemm(a, b, precision="3xtf32")
    planned, out = GemmPlan(a, b, precision="3xtf32"), torch.empty_like(a)
    yield "gemm 3xtf32, tensors, plan, out", "argand", lambda: planned(a, b, out=out)
    import argand.torch_ops  # noqa: F401  registers them

    operator = torch.ops.argand.gemm
    yield "gemm 3xtf32, operator of torch", "argand", lambda: operator(a, b, precision="3xtf32")
    yield "softmax fp32, tensors", "argand", lambda: softmax(x)
    softmaxes, held = SoftmaxPlan(x), torch.empty_like(x)
    yield "softmax fp32, tensors, plan, out", "argand", lambda: softmaxes(x, out=held)
    yield "dft 3xfp16, 1000, tensors", "argand", lambda: dft(rows)
    transforms, found = DftPlan(rows), torch.empty_like(rows)
    yield "dft 3xfp16, 1000, tensors, plan, out", "argand", lambda: transforms(rows, out=found)
    state = torch.asarray(_complexes(rng, 1 << _QUBITS)).cuda()
    prepared = PreparedCircuit(_one_pass(rng), state)
    yield "circuit of one pass, prepared, tensors", "argand", lambda: prepared(state)


def _one_pass(rng: np.random.Generator) -> CircuitPlan:
    """Return a circuit of one gate on two qubits, which leaves the norm of a state."""
    matrix = np.linalg.qr(_complexes(rng, 4, 4).astype(complex))[0]
    return plan_circuit(_QUBITS, [Gate(matrix, (3, 4))], device=gpu(0))


def _jaxs(rng: np.random.Generator) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield name, implementation and call of JAX's operations by its jit, where it is installed."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import jax
    except ImportError:
        return
    a, b = (jax.numpy.asarray(_complexes(rng, 64, 64)) for _ in range(2))
    ours = jax.jit(partial(gemm, precision="3xtf32"))
    yield "gemm 3xtf32, JAX's jit", "argand", lambda: ours(a, b)
    theirs = jax.jit(jax.numpy.matmul)
    yield "gemm, JAX's jit", "jax", lambda: theirs(a, b)
    graph = jax.jit(partial(gemm, precision="3xtf32"), compiler_options=_GRAPHS)
    yield "gemm 3xtf32, JAX's jit, a graph of one call", "argand", lambda: graph(a, b)
    for name, product in (("argand", partial(gemm, precision="3xtf32")), ("jax", jax.numpy.matmul)):
        program = jax.jit(partial(_chain, product))
        yield "8 products, JAX's jit", name, partial(program, a, b)


def _chain(product: Callable[..., Any], x: Any, y: Any) -> Any:
    """Return x y^8, scaled, by eight calls, which XLA makes a graph of by itself."""
    for _ in range(8):
        x = 0.1 * product(x, y)
    return x


def host_microseconds(
    cupy: Any, call: Callable[[], Any], count: int, rows: int, cores: set[int]
) -> list[float]:
    """Return the microseconds that a call takes the host, of each row of calls.

    Each row runs on the core that is fastest then, after some calls that warm it up: on a rented
    machine a core may take 1.8 times as long as another, for as long as its neighbour is busy.
    """
    found = []
    for _ in range(rows + 1):
        os.sched_setaffinity(0, {min(cores, key=_loop_seconds)})
        for _ in range(_WARMING):
            call()
        cupy.cuda.Device().synchronize()
        started = time.perf_counter()
        for _ in range(count):
            call()
        found.append(1e6 * (time.perf_counter() - started) / count)
    cupy.cuda.Device().synchronize()
    os.sched_setaffinity(0, cores)  # threads that a library starts later inherit it
    return found[1:]


def _loop_seconds(core: int) -> float:
    """Return the least seconds that a loop of a tenth of a millisecond takes on a core."""
    os.sched_setaffinity(0, {core})
    found = []
    for _ in range(3):
        started = time.perf_counter()
        sum(number * number for number in range(2_000))
        found.append(time.perf_counter() - started)
    return min(found)


def _complexes(rng: np.random.Generator, *shape: int) -> Any:
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)


def main() -> None:
    """Measure all and write the rows as they come."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=200, help="in a row")
    parser.add_argument("--rows", type=int, default=9)
    parser.add_argument("--seed", type=int, default=20260101)
    parser.add_argument("--out", type=Path, help="a CSV file for the rows")
    given = parser.parse_args()
    import cupy

    rng, device = np.random.default_rng(given.seed), gpu(cupy.cuda.Device().id).name
    found: list[Row] = []
    cores, host = os.sched_getaffinity(0), cpu().name
    for operation, implementation, call in calls(cupy, rng):
        times = host_microseconds(cupy, call, given.calls, given.rows, cores)
        found.append({
            "operation": operation, "implementation": implementation, "device": device,
            "calls": given.calls, "host_us": statistics.median(times), "host_us_least": min(times),
            "host": host, "load": round(os.getloadavg()[0], 1), "versions": versions(),
            "timestamp": timestamp(),
        })  # fmt: skip
        print(f"{operation:42} {implementation:7} {found[-1]['host_us']:8.2f} us a call")
        if given.out is not None:
            write_rows(given.out, found)  # each time, so that a run that is cut leaves its rows


if __name__ == "__main__":
    main()
