"""The peers that a case asks for, each as an implementation of its workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from argand import Device

from benchmarks.peers import Operation, Peer, study_names, study_peers
from workflow.config.case import Case
from workflow.data import Array
from workflow.implementation import Implementation
from workflow.inputs import operands

Compute = Callable[..., Any]
"""A peer's `compute` at one of its precisions."""
Prepare = Callable[..., Mapping[str, Array]]
"""Returns the operands of peers, given those staged and ``precision``."""


def implementations(
    case: Case, device: Device, operation: Operation,
    call: Callable[[Compute, Mapping[str, Any]], Any],
    prepare: Prepare = operands.cast,
) -> list[Implementation]:  # fmt: skip
    """Return every peer of `chosen` at each of its precisions.

    Args:
        case: whose ``baselines`` say which peers.
        device: what they compute on.
        operation: what they compute.
        call: computes the workload from a peer's function and the operands in device memory.
        prepare: the staged operands at a precision, before the clock.
    """

    def at(peer: Peer, name: str) -> Implementation:
        precision = peer.precision(name)
        return Implementation(
            peer.name, precision, peer.algorithm(name), partial(call, peer.computation(name)),
            partial(prepare, precision=precision),
        )  # fmt: skip

    return [at(peer, name) for peer in chosen(case, device, operation) for name in peer.precisions]


def chosen(case: Case, device: Device, operation: Operation) -> list[Peer]:
    """Return the peers of an operation that a case asks for.

    A study's list is for all its workloads, so a peer that only other operations have is passed
    over. Raises ValueError for a name that no operation has, and for one of this operation that is
    not installed or not for this device.
    """
    named = case.baselines or "auto"
    if named == "none":
        return []
    installed = [peer for peer in study_peers(operation, device.backend) if not peer.missing()]
    if named == "auto":
        return installed
    names = sorted({peer.name for peer in installed})
    elsewhere = set(study_names()) - {peer.name for peer in study_peers(operation)}
    for name in named:
        if name not in names and name not in elsewhere:
            raise ValueError(f"baselines must be one of {names} here, got {name!r}")
    return [peer for peer in installed if peer.name in named]
