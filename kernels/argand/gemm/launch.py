"""A product on a GPU, prepared for arrays of one form, by a choice of kernels."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain

import cupy

from argand.device import Device, gpu
from argand.gemm import tuned
from argand.gemm.candidates import with_packing
from argand.gemm.choice import GemmChoice
from argand.gemm.fma_launch import FmaLaunch
from argand.gemm.heuristics import ADVICE
from argand.gemm.names import computed_name, in_place_name, wgmma_name
from argand.gemm.pack_launch import Planes
from argand.gemm.panel_launch import PanelLaunch
from argand.gemm.panels import Panels, panels_by_time
from argand.gemm.product_form import ProductForm
from argand.gemm.sm80_launch import MmaLaunch
from argand.gemm.sm90_call import WgmmaCall
from argand.runtime import kernel_trace
from argand.runtime.graph import LaunchSequence
from argand.runtime.plan import PlanError
from argand.runtime.plan_override import PlanOverride
from argand.runtime.workspace_limit import WorkspaceError, allowed_workspace, workspace_error

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
    """Return a workspace that suffices, found from one of which less is ``refused``.

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


class GemmLaunch:
    """The launches of one product.

    Parts of the workspace that a choice leaves open take at most what ``allowed`` leaves.
    """

    def __init__(
        self, form: ProductForm, choice: GemmChoice, device: Device, allowed: int | None = None
    ) -> None:
        self.choice = choice
        asked, traits = form.problem.precision, (form.a.traits, form.b.traits)
        computed = choice.computed_at(asked)
        form = replace(form, problem=replace(form.problem, precision=computed))
        if choice.in_tf32 and any(x.layout is None or x.half for x in (form.a, form.b)):
            raise PlanError(f"packed operands and pairs are in the format of {asked.name}")
        self._in_place: MmaLaunch | FmaLaunch | None = None
        self._wgmma: WgmmaCall | None = None
        if choice.wgmma is None:
            self._in_place = _in_place_launch(form, choice, device, allowed)
            name = in_place_name(self._in_place.plan, computed, *traits)
        else:
            self._wgmma = WgmmaCall(form, choice, device, allowed)
            name = wgmma_name(choice, self._wgmma.plan, self._wgmma.division, *traits)
        #: The launch's name in records.
        self.name = computed_name(name, asked, computed)

    @property
    def nbytes(self) -> int:
        """Bytes of workspace of a call: planes, and partial tiles or split-K slices."""
        made = self._in_place or self._wgmma
        return 0 if made is None else made.nbytes

    @property
    def mirrors(self) -> bool:
        """Whether a Hermitian result is stored whole, with a real diagonal."""
        made = self._wgmma or self._in_place
        return made is not None and not isinstance(made, FmaLaunch) and made.plan.mirror

    @property
    def sequence(self) -> LaunchSequence | None:
        """The launches in place, of addresses a, b, c, out, 0, 0; None with an absmax kernel."""
        return None if self._in_place is None else self._in_place.sequence

    def __call__(self, a: int | Planes, b: int | Planes, c: int, out: int) -> None:
        """Launch on these addresses or planes; c is not read where beta is 0."""
        if kernel_trace.watching:
            kernel_trace.note(self.name)
        self.queue(a, b, c, out)

    def queue(self, a: int | Planes, b: int | Planes, c: int, out: int) -> None:
        """Launch, without a name in records."""
        if self._wgmma is not None:
            self._wgmma(a, b, c, out)
        elif self._in_place is not None:
            left = a.copy.data.ptr if isinstance(a, Planes) else a
            right = b.copy.data.ptr if isinstance(b, Planes) else b
            self._in_place(left, right, c, out)


def _in_place_launch(
    form: ProductForm, choice: GemmChoice, device: Device, allowed: int | None
) -> MmaLaunch | FmaLaunch:
    """Return the launches of a choice that reads operands, or copies beside planes, in place."""
    left, right = form.a.layout or form.a.copy, form.b.layout or form.b.copy
    assert left is not None
    assert right is not None
    layouts = left, right, form.addend, form.out
    if choice.fma is not None:
        return FmaLaunch(form.problem, *layouts, device, choice.fma)
    return MmaLaunch(form.problem, *layouts, device, choice.mma, allowed)
