"""An image as NumPy and CuPy users write it: all weights of a channel, R w, and conj(w) (R w)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from argand import PRECISIONS, Precision
from argand.image.problem import SPEED_OF_LIGHT

from benchmarks.peers._peer import Backend, Candidate, Peer

ALGORITHM = "weights in memory, two products"
_PRECISIONS = ("fp64", "fp32")


def image_by(
    arrays: Any, precision: str, covariances: Any, positions: Any, frequencies: Any, directions: Any
) -> Any:
    """Return the power (..., direction) by NumPy or CuPy.

    The phases are reduced in fp64, or fp32's would be off by more than its unit roundoff.
    """
    kind = np.dtype(PRECISIONS[precision].output)
    delays = arrays.asarray(positions) @ arrays.asarray(directions).T / SPEED_OF_LIGHT
    total = arrays.zeros(
        (*covariances.shape[:-3], len(directions)), PRECISIONS[precision].real_output
    )
    for channel, frequency in enumerate(np.asarray(frequencies)):
        turns = float(frequency) * delays
        weights = arrays.exp((2j * np.pi) * (turns - arrays.rint(turns))).astype(kind)
        formed = arrays.matmul(covariances[..., channel, :, :].astype(kind, copy=False), weights)
        formed *= weights.conj()
        total += formed.real.sum(axis=-2)
    return total


def bytes_of_image(weights: float, images: int) -> float:
    """Return the bytes that the steps of `image_by` read and write in fp64.

    For a weight they turn, round, reduce, multiply by 2 pi i, exponentiate, convert and conjugate;
    for a number of each image's R w they make it of a weight, multiply and add.
    """
    return weights * (176 + 96 * images)


def image_peer(name: str, backend: Backend) -> Peer:
    """Return the peer of NumPy or CuPy, whose module has the peer's name."""

    def compute(precision: str, covariances: Any, *place: Any) -> Any:
        return image_by(import_module(name), precision, covariances, *place)

    return Peer(
        name=name, operation="image", backends=(backend,), precisions=_PRECISIONS,
        algorithm=lambda precision: ALGORITHM, modules=(name,), compute=compute,
        prepared=lambda: _candidates(name, compute),
    )  # fmt: skip


def _candidates(name: str, compute: Callable[..., Any]) -> list[Candidate]:
    """Return the candidates of a benchmark: covariances in the precision's type, places in fp64."""

    def prepare(row: Precision, covariances: Any, *place: Any) -> tuple[Any, ...]:
        return covariances.astype(row.output), *place

    return [
        Candidate(
            name, row, ALGORITHM, partial(prepare, row), partial(compute, row.name),
            input=row.output, output="real",
        )
        for row in map(PRECISIONS.__getitem__, _PRECISIONS)
    ]  # fmt: skip
