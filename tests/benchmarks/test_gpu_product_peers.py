"""Every candidate of the benchmark of products on a GPU: it verifies, or says why it cannot run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from argand import PRECISIONS, Device
from argand.runtime.measuring.ceilings import Ceilings, operand_formats

from benchmarks.gemm import __main__ as gemm
from benchmarks.gemm import ours as gemm_ours
from benchmarks.gemm.operands import random_operands
from benchmarks.gemm.product_check import ProductCheck
from benchmarks.gemm.shapes import Shape
from benchmarks.harness.measuring import Bench
from benchmarks.peers import Candidate, candidates, cublaslt_planar, triton_planar
from workflow.records import NOT_RUN

pytestmark = pytest.mark.gpu

SHAPES = (Shape(256, 192, 320), Shape(64, 128, 96, batch=5))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_candidate_verifies_or_says_why_not(gpu: Device, shape: Shape) -> None:
    import cupy

    ceilings = Ceilings(gpu.name, 4000.0, dict.fromkeys(operand_formats(), 100.0))
    bench = Bench(
        replace(gpu, cache_bytes=0), ceilings, repeats=3, seconds=0.01, sustain=0.0, rest=0.0
    )
    a, b = random_operands(shape, seed=1)
    check = ProductCheck(shape, a, b, backend="cuda", seed=1)
    operands = [cupy.asarray(x) for x in (a, b)]
    ours = gemm_ours.candidates(gpu, list(PRECISIONS.values()))
    for one in [*ours, *candidates("gemm", "cuda")]:
        row = bench.run(one, gemm.work(shape, one), operands, check.assess, sampled=check.taken)
        said = f"{one.name} {one.precision.name} {one.input} > {one.output}: {row.reason}"
        if one.name == "argand":
            assert row.verified, said
        assert row.verified or row.reason.startswith(NOT_RUN), said


def assert_verified(found: Sequence[Candidate], shape: Shape, chosen: str) -> None:
    """Each computes the shape, verifies, and says by this word what it chose."""
    import cupy

    a, b = random_operands(shape, seed=1)
    check = ProductCheck(shape, a, b, backend="cuda", seed=1)
    for one in found:
        inputs = one.prepare(cupy.asarray(a), cupy.asarray(b))
        accuracy = check(one.result(one.compute(*inputs)), one)
        assert accuracy.verified, accuracy.reason
        assert chosen in one.chosen(*inputs)


def test_the_planar_peer_is_not_left_out_where_cublas_is(gpu: Device) -> None:
    """Multiples of 16 on Hopper: nothing for the heuristic to refuse."""
    assert_verified(cublaslt_planar.candidates(), Shape(512, 512, 512), "algorithm")


def test_triton_takes_sizes_that_are_no_tiles(gpu: Device) -> None:
    """The winning configuration stands in the row."""
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    assert_verified(triton_planar.PEER.candidates(), Shape(130, 70, 90), "stages")
