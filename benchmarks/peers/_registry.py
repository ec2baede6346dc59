"""The peers that there are: every module of the folder without an underscore."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from benchmarks.peers._peer import Backend, Candidate, Operation, Peer


@cache
def every() -> dict[str, Peer]:
    """Return all peers by the name of their module: by operation, on the CPU before a GPU, by name.

    Raises TypeError for a module without a `Peer` called PEER, and ValueError where two of an
    operation have one name.
    """
    folder = import_module("benchmarks.peers")
    found: dict[str, Peer] = {}
    for module in pkgutil.iter_modules(folder.__path__, "benchmarks.peers."):
        if module.name.rpartition(".")[2].startswith("_"):
            continue
        peer = getattr(import_module(module.name), "PEER", None)
        if not isinstance(peer, Peer):
            raise TypeError(f"{module.name} must have a Peer called PEER")
        for other, known in found.items():
            if (known.operation, known.name) == (peer.operation, peer.name):
                raise ValueError(f"{other} and {module.name} are both {peer.name}")
        found[module.name] = peer
    return dict(sorted(found.items(), key=lambda item: _place(item[1])))


def _place(peer: Peer) -> tuple[Any, ...]:
    return peer.operation, len(peer.backends), sorted(peer.backends), peer.name


def peers_of(operation: Operation, backend: Backend | None = None) -> list[Peer]:
    """Return an operation's peers, on any device or on one's, installed or not."""
    return [
        peer
        for peer in every().values()
        if peer.operation == operation and (backend is None or backend in peer.backends)
    ]


def study_peers(operation: Operation, backend: Backend | None = None) -> list[Peer]:
    """Return those that studies measure."""
    return [peer for peer in peers_of(operation, backend) if peer.compute is not None]


def study_names() -> tuple[str, ...]:
    """Return the names that ``baselines`` of a study may hold, each once."""
    return tuple(dict.fromkeys(peer.name for peer in every().values() if peer.compute is not None))


def study_modules() -> tuple[str, ...]:
    """Return the modules of the peers that studies measure."""
    return tuple(name for name, peer in every().items() if peer.compute is not None)


def benchmark_names(operation: Operation) -> tuple[str, ...]:
    """Return the names that ``--peers`` of an operation's benchmark may hold."""
    return tuple(peer.name for peer in peers_of(operation) if peer.benchmarked)


def candidates(operation: Operation, backend: Backend, /, **problem: Any) -> list[Candidate]:
    """Return the candidates of all peers on a device; those that are missing say so."""
    return [
        candidate
        for peer in peers_of(operation, backend)
        if peer.benchmarked
        for candidate in peer.candidates(**problem)
    ]
