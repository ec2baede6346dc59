"""Launches of exact products on a GPU within the workspace limit, made once for each problem."""

from __future__ import annotations

from functools import lru_cache

from argand.device import Device
from argand.gemm.modular.batch_launch import BatchLaunch
from argand.gemm.modular.launch import ModularLaunch
from argand.gemm.modular.pieces import most_workspace, products_within
from argand.gemm.modular.problem import ModularProblem


@lru_cache(maxsize=256)
def launch_for(
    problem: ModularProblem, device: Device, allowed: int | None = None
) -> ModularLaunch | BatchLaunch:
    """Return the launches of a problem on a device, made once, of at most ``allowed`` bytes.

    Raises WorkspaceError where the smallest pieces take more.
    """
    if allowed is None:
        return ModularLaunch(problem, device)
    limit = max(0, min(most_workspace(problem), allowed))
    products = products_within(problem, limit)
    if products < problem.batch:
        return BatchLaunch(problem, device, limit, products, allowed)
    return ModularLaunch(problem, device, limit, allowed)
