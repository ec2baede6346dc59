"""Launches of exact products on a GPU within the workspace limit, made once for each problem."""

from __future__ import annotations

from functools import lru_cache

from argand.device import Device
from argand.gemm.modular.batch_launch import BatchLaunch
from argand.gemm.modular.launch import ModularLaunch
from argand.gemm.modular.pieces import most_workspace, products_within
from argand.gemm.modular.problem import ModularProblem
from argand.runtime.workspace_limit import workspace_error


@lru_cache(maxsize=256)
def prepared(
    problem: ModularProblem, device: Device, allowed: int | None = None
) -> ModularLaunch | BatchLaunch:
    """Return the launches of a problem on a device, made once, of at most ``allowed`` bytes.

    Raises WorkspaceError where the smallest pieces take more.
    """
    if allowed is None:
        return ModularLaunch(problem, device)
    limit = max(0, min(most_workspace(problem), allowed))
    products = products_within(problem, limit)
    found = (
        ModularLaunch(problem, device, limit)
        if products == problem.batch
        else BatchLaunch(problem, device, limit, products)
    )
    if found.nbytes > allowed:
        what = f"an exact product of {problem.count} moduli, in the smallest pieces,"
        raise workspace_error(what, found.nbytes, allowed, "take fewer moduli")
    return found
