"""Whole calls of libraries, as their users make them, of what a case prepares."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from argand import Precision

from benchmarks.peers import Candidate, absent, peers_of
from benchmarks.peers._peer import Backend


def whole_calls(
    operation: str, backend: Backend, row: Precision, prepare: Callable[..., tuple[Any, ...]],
    call: Callable[..., Any] | None = None,
) -> list[Candidate]:  # fmt: skip
    """Return a call of each library at a precision, on what ``prepare`` makes of operands.

    ``call`` takes the library's computation (`benchmarks.peers.Peer`) before what was prepared;
    without it the computation does.
    """
    found = []
    for peer in peers_of(operation, backend):
        compute = peer.computation(row.name)
        one = Candidate(
            peer.name, row, peer.algorithm(row.name), prepare,
            partial(call, compute) if call else compute,
        )  # fmt: skip
        found.append(absent(one, reason) if (reason := peer.missing()) else one)
    return found
