"""The launches of a product on a GPU, by a choice of kernels."""

from __future__ import annotations

from dataclasses import replace

from argand.device import Device
from argand.gemm.choice import GemmChoice
from argand.gemm.fma.launch import FmaLaunch
from argand.gemm.names import computed_name, in_place_name, wgmma_name
from argand.gemm.pack.launch import Planes
from argand.gemm.product_form import ProductForm
from argand.gemm.sm80.launch import MmaLaunch
from argand.gemm.sm90.call import WgmmaCall
from argand.runtime.launch import kernel_trace
from argand.runtime.launch.graph import LaunchSequence
from argand.runtime.plan import PlanError


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
