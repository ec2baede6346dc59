"""Detected beams as users of array libraries write them: all beams, their squares, a sum."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from argand import PRECISIONS, Precision
from argand.beam_power.problem import Detect

from benchmarks.peers._peer import Backend, Candidate, Peer

ALGORITHM = "beams in memory, squares, sum"


def summed(x: Any, integrate: int) -> Any:
    """Return the sums over bins of the last axis; samples after the last whole one are left out."""
    bins = x.shape[-1] // integrate
    return x[..., : bins * integrate].reshape(*x.shape[:-1], bins, integrate).sum(-1)


def detected(arrays: Any, beams: Any, detect: Detect, integrate: int) -> Any:
    """Return the power or Stokes parameters of beams (..., time) of NumPy, CuPy or PyTorch."""
    power = summed(beams.real**2 + beams.imag**2, integrate)
    if detect == "power":
        return power
    xx, yy = power[..., 0, :, :], power[..., 1, :, :]
    cross = summed(beams[..., 0, :, :].conj() * beams[..., 1, :, :], integrate)
    return arrays.stack([xx + yy, xx - yy, 2 * cross.real, 2 * cross.imag], -3)


def beam_power_peer(name: str, backend: Backend) -> Peer:
    """Return the peer of NumPy or CuPy, whose module has the peer's name."""

    def compute(
        precision: str, weights: Any, samples: Any, *, detect: Detect = "power", integrate: int = 1
    ) -> Any:
        arrays = import_module(name)
        return detected(arrays, arrays.matmul(weights, samples), detect, integrate)

    return Peer(
        name=name, operation="beam_power", backends=(backend,), precisions=("fp64", "fp32"),
        algorithm=lambda precision: ALGORITHM, modules=(name,), compute=compute,
        prepared=partial(_candidates, name, compute),
    )  # fmt: skip


def _candidates(
    name: str, compute: Callable[..., Any], detect: Detect = "power", integrate: int = 1
) -> list[Candidate]:
    """Return the candidates of a benchmark: operands in the precision's type."""

    def prepare(row: Precision, *given: Any) -> tuple[Any, ...]:
        return tuple(one.astype(row.output) for one in given)

    return [
        Candidate(
            name, row, ALGORITHM, partial(prepare, row),
            partial(compute, row.name, detect=detect, integrate=integrate), input=row.output,
            output="real",
        )
        for row in map(PRECISIONS.__getitem__, ("fp64", "fp32"))
    ]  # fmt: skip
