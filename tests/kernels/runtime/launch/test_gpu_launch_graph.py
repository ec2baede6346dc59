"""Calls of one form again and again are CUDA graphs, from the third on (an sm_90 GPU)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import gemm, pack
from argand.gemm.question import GemmSizes

from tests.kernels.gemm.sm90.wgmma_cases import first_choices, overridden
from tests.kernels.precisions import TENSOR
from tests.kernels.runtime.launch.graph_cases import (
    CALLS,
    HOW,
    SHAPE,
    graphs,
    one_by_one,
    operands,
    same,
)

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma", "no_cached_call")]


@pytest.mark.parametrize("precision", TENSOR)
def test_graphs_give_the_bits_of_single_launches(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """Every role and storage, with and without split-K; what the arrays hold changes."""
    m, n, k = SHAPE
    pairs = operands(cp, rng)
    before = graphs()
    for choice in first_choices(cp, precision, GemmSizes(1, m, n, k)):
        with overridden(choice):
            expected = one_by_one(cp, monkeypatch, pairs, precision=precision)
            places = [cp.empty((m, n), cp.complex64) for _ in pairs]
            x, y = (cp.empty_like(operand) for operand in pairs[0])
            for _ in range(CALLS):
                for (a, b), product, out in zip(pairs, expected, places, strict=True):
                    out.fill(np.nan)
                    assert same(gemm(a, b, precision=precision, out=out), product)
                    x[...], y[...] = a, b
                    places[0].fill(np.nan)
                    assert same(gemm(x, y, precision=precision, out=places[0]), product)
    assert graphs() > before


@pytest.mark.parametrize("precision", ["tf32", "3xfp16"])
def test_graphs_of_packed_operands(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """Planes, and what scales them back, are addresses like others."""
    pairs = [(a, pack(b, precision, side="b", kernels="wgmma")) for a, b in operands(cp, rng)]
    expected = one_by_one(cp, monkeypatch, pairs, precision=precision)
    places = [cp.empty_like(x) for x in expected]
    for _ in range(CALLS):
        for (a, b), product, out in zip(pairs, expected, places, strict=True):
            out.fill(np.nan)
            assert same(gemm(a, b, precision=precision, out=out), product)


def test_results_that_are_new_each_time(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take turns in a few places, or lie where nothing has been before."""
    pairs = operands(cp, rng)
    expected = one_by_one(cp, monkeypatch, pairs, **HOW)
    before = graphs()
    for _ in range(2 * CALLS):
        for (a, b), product in zip(pairs, expected, strict=True):
            assert same(gemm(a, b, **HOW), product)
    assert graphs() > before
    kept = []
    for _ in range(2 * CALLS):
        for (a, b), product in zip(pairs, expected, strict=True):
            kept.append(gemm(a, b, **HOW))
            assert same(kept[-1], product)


def test_what_is_captured_is_the_kernels(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that is being captured takes none of our graphs, nor are there new ones."""
    pairs = operands(cp, rng)
    expected = one_by_one(cp, monkeypatch, pairs, **HOW)
    places = [cp.empty_like(x) for x in expected]
    for calls_before in (1, CALLS):
        with cp.cuda.Stream(non_blocking=True) as stream:
            for _ in range(calls_before):
                gemm(*pairs[0], out=places[0], **HOW)
            before = graphs()
            stream.begin_capture()
            for _ in range(CALLS):
                for (a, b), out in zip(pairs, places, strict=True):
                    gemm(a, b, out=out, **HOW)
            captured = stream.end_capture()
            assert graphs() == before
            for _ in range(2):
                for out in places:
                    out.fill(np.nan)
                captured.launch()
                stream.synchronize()
                assert all(same(*x) for x in zip(places, expected, strict=True))
            for out in places:
                out.fill(np.nan)
            gemm(*pairs[0], out=places[0], **HOW)
            stream.synchronize()
            assert same(places[0], expected[0])


def test_there_are_not_too_many_graphs(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits of graphs of one form on a stream, of one form on many streams, and in all."""
    from argand.runtime.launch import graph as cuda_graph

    (pair,) = operands(cp, rng, 1)
    (expected,) = one_by_one(cp, monkeypatch, [pair], **HOW)
    places = [cp.empty_like(expected) for _ in range(cuda_graph._GRAPHS_PER_STREAM + 3)]

    def call_all() -> None:
        for _ in range(CALLS):
            for out in places:
                out.fill(np.nan)
                assert same(gemm(*pair, out=out, **HOW), expected)

    before = graphs()
    call_all()
    assert graphs() == before + cuda_graph._GRAPHS_PER_STREAM
    for _ in range(cuda_graph._MAX_STREAMS + 2):
        with cp.cuda.Stream(non_blocking=True) as stream:
            call_all()
            stream.synchronize()
    assert graphs() <= before + cuda_graph._GRAPHS_PER_STREAM * cuda_graph._MAX_STREAMS
    monkeypatch.setattr(cuda_graph, "_MAX_GRAPHS", graphs())
    monkeypatch.setattr(cuda_graph, "_IDLE_SECONDS", 1e9)
    before = graphs()
    (other,) = operands(cp, rng, 1)
    other = (other[0][:60], other[1])
    first = gemm(*other, **HOW)
    for _ in range(CALLS):
        assert same(gemm(*other, **HOW), first)
    assert graphs() == before


def test_forms_that_lie_idle_give_up_their_graphs(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are as many graphs as there may be, the next form gets those of idle ones."""
    from argand.runtime.launch import graph as cuda_graph

    (pair,), (other,) = operands(cp, rng, 1), operands(cp, rng, 1)
    other = (other[0][:60], other[1])
    places = [cp.empty((len(a), b.shape[1]), a.dtype) for a, b in (pair, other)]
    expected = [one_by_one(cp, monkeypatch, [x], **HOW)[0] for x in (pair, other)]

    def call(number: int) -> None:
        places[number].fill(np.nan)
        found = gemm(*(pair, other)[number], out=places[number], **HOW)
        assert same(found, expected[number])

    for _ in range(CALLS):
        call(0)
    monkeypatch.setattr(cuda_graph, "_MAX_GRAPHS", graphs())
    monkeypatch.setattr(cuda_graph, "_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(cuda_graph, "_looked_for_idle", 0.0)
    for _ in range(CALLS):
        call(1)
    assert 0 < graphs() <= cuda_graph._MAX_GRAPHS
    for _ in range(CALLS):
        call(0)


def test_a_single_kernel_has_graphs_where_its_addresses_come_again(
    cp: Any, rng: np.random.Generator
) -> None:
    """Graphs of one loop's arrays, then of another; with more arrays than graphs it has none."""
    from argand.runtime.launch import graph as cuda_graph

    a, b = (cp.asarray(rng.normal(size=(40, 40)).astype("complex64")) for _ in range(2))
    given: dict[str, Any] = {"precision": "tf32", "kernels": "mma.sync"}
    expected = gemm(a, b, **given)
    outs = [cp.empty_like(a) for _ in range(3 * cuda_graph._MAX_MISSED)]

    def made(places: list[Any], rounds: int) -> int:
        before = graphs()
        for _ in range(rounds):
            for out in places:
                out.fill(np.nan)
                assert same(gemm(a, b, out=out, **given), expected)
        return graphs() - before

    assert made(outs, 4) == 0
    most = cuda_graph._GRAPHS_PER_STREAM
    assert made(outs[:most], 4) == most
    # The first loop's graphs are dropped once the second's launches have been left out for long.
    assert made(outs[most : most + 2], cuda_graph._MAX_LEFT_OUT) == 2 - most
