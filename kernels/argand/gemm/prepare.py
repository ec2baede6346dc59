"""Choice and launches of a product on the current device, for arrays of one form.

A plan override comes first; else a limit of workspace decides whether the product runs in panels.
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import chain

import cupy

from argand.device import gpu
from argand.gemm import tuned
from argand.gemm.candidates import with_packing
from argand.gemm.choice import GemmChoice
from argand.gemm.heuristics import ADVICE
from argand.gemm.launch import GemmLaunch
from argand.gemm.panel_launch import PanelLaunch
from argand.gemm.panels import Panels, panels_by_time
from argand.gemm.product_form import ProductForm
from argand.runtime.memory.workspace_limit import WorkspaceError, allowed_workspace, workspace_error
from argand.runtime.plans.plan_override import PlanOverride

PLAN_OVERRIDE: PlanOverride[GemmChoice] = PlanOverride()
"""Within ``PLAN_OVERRIDE.use(choice)`` every product takes this choice: for tests and tuning.

A row operand that the choice cannot read in place is packed.
"""


def prepare(form: ProductForm) -> GemmLaunch | PanelLaunch:
    """Return the launches of a product on the current device.

    Raises WorkspaceError where they take more than `argand.workspace_limit` allows.
    """
    device = cupy.cuda.Device().id
    choice = PLAN_OVERRIDE.value
    if choice is None:
        return _prepare_within_limit(form, device, allowed_workspace(), tuned.TABLE.generation)
    computed = choice.computed_at(form.problem.precision)
    return GemmLaunch(
        form, with_packing(choice, computed, form.a.traits, form.b.traits), gpu(device)
    )


@lru_cache(maxsize=1024)
def _prepare_within_limit(
    form: ProductForm, device: int, allowed: int | None, _generation: int
) -> GemmLaunch | PanelLaunch:
    """Return the launches whose workspace is within a limit, in panels where these are faster.

    What a WorkspaceError says to be needed is enough: the product was prepared within it.
    """
    if allowed is None:
        choice = tuned.chosen(form.question(), device, form.problem.kernels)
        return GemmLaunch(form, choice, gpu(device))
    try:
        return _fastest_within(allowed, device, form)
    except WorkspaceError as error:
        needed = _sufficient_workspace(error.needed, allowed, device, form)
    problem = form.problem
    what = f"a product {problem.m}x{problem.n}x{problem.k} at {problem.precision.name}, in panels,"
    raise workspace_error(what, needed, allowed, ADVICE)


def _sufficient_workspace(needed: int, refused: int, device: int, form: ProductForm) -> int:
    """Return a workspace that suffices, searched from ``needed``; ``refused`` bytes do not suffice.

    It is that of the launches, unless they are only found where more is allowed.
    """
    enough: int | None = None
    while True:
        try:
            found = _fastest_within(needed, device, form)
        except WorkspaceError as error:
            if enough is not None:
                return enough
            needed = error.needed
        else:
            if not refused < found.nbytes < needed:
                return needed
            enough, needed = needed, found.nbytes


def _fastest_within(allowed: int, device: int, form: ProductForm) -> GemmLaunch | PanelLaunch:
    """Return the fastest launches within a limit: of the whole product, or of its panels."""
    question, family, card = form.question(allowed), form.problem.kernels, gpu(device)
    whole = Panels.whole(question.sizes)
    refused: list[WorkspaceError] = []
    measured = [whole] if tuned.lookup_within(question, device, family) is not None else []
    by_time = panels_by_time(
        question, card.require_arch(), card.sm_count, family, card.relative_memory
    )
    for panels in chain(measured, by_time):
        try:
            if panels == whole:
                return _without_panels(allowed, device, form)
            return PanelLaunch(panels, form, partial(_without_panels, allowed, device))
        except WorkspaceError as error:  # layouts of parts may take more than is estimated
            refused.append(error)
    raise min(refused, key=lambda x: x.needed)


def _without_panels(allowed: int, device: int, form: ProductForm) -> GemmLaunch:
    """Return the launches of a product that is not cut, whose workspace is within a limit."""
    choice = tuned.chosen(form.question(allowed), device, form.problem.kernels)
    launch = GemmLaunch(form, choice, gpu(device), allowed)
    if launch.nbytes > allowed:  # `workspace_of` counts as much or more
        raise workspace_error("the product", launch.nbytes, allowed)
    return launch
