"""The libraries that are measured on a GPU compute what ours do."""

import numpy as np
import pytest
from argand import PRECISIONS

from benchmarks.peers import cublas, numpy_matmul
from workflow.accuracy.bounds import product_bound
from workflow.workloads import KINDS, workload_of

pytestmark = pytest.mark.gpu

CASES = [
    {"kind": "gemm", "m": 33, "n": 17, "k": 65, "batch": 3, "alpha": [1, 2], "beta": 0.5},
    {"kind": "beamforming", "beams": 12, "antennas": 9, "samples": 31, "channels": 2},
    {"kind": "statevector", "circuit": {"name": "random", "qubits": 9, "depth": 6}, "fuse": 3},
    {"kind": "statevector", "circuit": {"name": "random", "qubits": 13, "depth": 9, "seed": 1}},
    {"kind": "dft", "length": 130, "batch": 5, "window": "hann", "norm": "ortho"},
    {"kind": "dft", "length": 97, "batch": 5, "inverse": True},
    {"kind": "softmax", "rows": 7, "columns": 129, "scale": 5},
    {"kind": "solve", "n": 70, "rhs": 3, "batch": 2},
    {"kind": "image", "antennas": 9, "directions": {"n": 11, "field_of_view_deg": 30}},
    {"kind": "channelise", "channels": 12, "taps": 3, "antennas": 3, "samples": 150},
    {"kind": "channelise", "channels": 64, "oversampling": "4/3", "real": True, "samples": 2000},
    {"kind": "dft", "power": True, "length": 64, "segments": 50, "average": 7, "window": "hann"},
    {"kind": "dft", "power": True, "length": 37, "segments": 9, "real": True},
    {"kind": "solve", "n": 120, "rhs": 2, "source": "cylinder", "ka": 8},
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["kind"])
def test_ours_and_peers_verify(case, gpu):
    import cupy

    one = workload_of("w", KINDS[case["kind"]].case_type.model_validate(case), 3)
    staged = one.stage()
    reference = one.reference(staged)
    ours = [one.argand(staged, precision, gpu) for precision in PRECISIONS.values()]
    peers = one.baselines(staged, gpu)
    assert peers
    for implementation in [*ours, *peers]:
        given = implementation.prepare(staged.operands)
        given = {name: cupy.asarray(data) for name, data in given.items()}
        result = cupy.asnumpy(implementation.compute(given))
        computed = one.as_computed(staged, implementation.plan_words)
        accuracy = one.assess(computed, reference, result, implementation.precision, "cuda")
        named = (implementation.name, implementation.precision.name, accuracy.reason)
        assert accuracy.verified, named


@pytest.mark.pairwise
@pytest.mark.parametrize("op_a", ["N", "T", "C"])
@pytest.mark.parametrize("op_b", ["N", "T", "C"])
@pytest.mark.parametrize("shared", [False, True])
def test_cublas_takes_every_op_and_batch(op_a, op_b, shared, gpu, rng):
    import cupy

    shapes = [(5, 9) if op_a == "N" else (9, 5), (9, 7) if op_b == "N" else (7, 9), (5, 7)]
    batch = [() if shared else (4,), (4,), (4,)]
    a, b, c = (
        rng.normal(size=(*lead, *shape)) + 1j * rng.normal(size=(*lead, *shape))
        for lead, shape in zip(batch, shapes, strict=True)
    )
    scalars = {"alpha": 0.5 - 1j, "beta": 2j, "op_a": op_a, "op_b": op_b}
    exact = numpy_matmul.multiply("fp64", a, b, c, **scalars)
    size = np.abs(a).sum() * np.abs(b).max() + np.abs(c).max()
    for name in cublas.PEER.precisions:
        precision = cublas.PEER.precision(name)
        given = [cupy.asarray(x.astype(precision.output)) for x in (a, b, c)]
        found = cupy.asnumpy(cublas.multiply(name, *given, **scalars))
        bound = product_bound(precision, 9, "cuda", alpha=0.5 - 1j, beta=2j)
        assert np.abs(found - exact).max() <= 3 * bound * size, name
