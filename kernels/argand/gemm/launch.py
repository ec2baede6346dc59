"""A product on a GPU, prepared for operands of one form, by a choice of kernels."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

import cupy

from argand.device import Device, gpu
from argand.gemm import tuned as tuning
from argand.gemm.candidates import GemmChoice, adapted
from argand.gemm.choice_workspace import workspace_of
from argand.gemm.families import Family
from argand.gemm.fma_launch import FmaLaunch
from argand.gemm.heuristics import choose
from argand.gemm.names import computed_name, in_place_name, wgmma_name
from argand.gemm.operand_form import OperandForm
from argand.gemm.pack_launch import Planes
from argand.gemm.panel_launch import PanelLaunch
from argand.gemm.panels import Panels, choose_panels
from argand.gemm.problem import GemmProblem
from argand.gemm.question import Question
from argand.gemm.sizes import GemmSizes
from argand.gemm.sm80_launch import MmaLaunch
from argand.gemm.sm90_call import WgmmaCall
from argand.runtime import kernel_trace
from argand.runtime.graph import LaunchSequence
from argand.runtime.layout import Layout
from argand.runtime.plan import PlanError
from argand.runtime.plan_override import PlanOverride
from argand.runtime.workspace_limit import WorkspaceError, allowed_workspace, workspace_error

PLAN_OVERRIDE: PlanOverride[GemmChoice] = PlanOverride()
"""Within ``PLAN_OVERRIDE.use(choice)`` every product takes this choice: for tests and tuning.

A row operand that the choice cannot read in place is packed.
"""


def prepare(
    problem: GemmProblem,
    a: OperandForm,
    b: OperandForm,
    c: Layout | None,
    out: Layout,
) -> GemmLaunch | PanelLaunch:
    """Return the launches that solve a problem on the current device.

    Raises WorkspaceError where they take more than `argand.workspace_limit` allows.
    """
    device = cupy.cuda.Device().id
    choice = PLAN_OVERRIDE.value
    if choice is None:
        return _prepared(
            problem, a, b, c, out, device, allowed_workspace(), tuning.TABLE.generation
        )
    return GemmLaunch(
        problem, a, b, c, out,
        adapted(choice, choice.computed_at(problem.precision), a.traits, b.traits), gpu(device),
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _prepared(
    problem: GemmProblem,
    a: OperandForm,
    b: OperandForm,
    c: Layout | None,
    out: Layout,
    device: int,
    allowed: int | None,
    _generation: int,
) -> GemmLaunch | PanelLaunch:
    """Return the launches whose workspace is within a limit, in panels where these are faster."""
    found, question = gpu(device), question_of(problem, a, b, allowed)
    if allowed is None:
        return GemmLaunch(
            problem, a, b, c, out, choice_for(question, device, problem.kernels), found
        )
    measured = _measured(question, device, problem.kernels)
    panels = Panels.whole(question.sizes)
    if measured is None:
        panels = choose_panels(
            question, found.require_arch(), found.sm_count, problem.kernels, found.relative_memory
        )
    if panels == Panels.whole(question.sizes):
        return _whole_within(allowed, device, problem, a, b, c, out)
    return PanelLaunch(panels, problem, a, b, c, out, partial(_whole_within, allowed, device))


def _whole_within(
    allowed: int, device: int, problem: GemmProblem, a: OperandForm, b: OperandForm,
    c: Layout | None, out: Layout,
) -> GemmLaunch:  # fmt: skip
    """Return the launches of a product that is not cut, whose workspace is within a limit."""
    question, beside = question_of(problem, a, b, allowed), 0
    while True:
        try:
            choice = choice_for(question, device, problem.kernels)
        except WorkspaceError as error:
            if not beside:
                raise
            raise workspace_error("the product", error.needed + beside, allowed) from error
        launch = GemmLaunch(problem, a, b, c, out, choice, gpu(device), question.allowed)
        if launch.nbytes <= allowed:
            return launch
        # What depends on layouts, such as scales of what is packed, is in no choice's workspace.
        if beside == allowed:
            raise workspace_error("the product", launch.nbytes, allowed)
        beside = min(allowed, beside + launch.nbytes - allowed)
        question = question._replace(allowed=allowed - beside)


def question_of(
    problem: GemmProblem, a: OperandForm, b: OperandForm, allowed: int | None = None
) -> Question:
    """Return the question of the plan of a product of operands of these forms."""
    return Question(
        problem.precision, GemmSizes.of(problem), a.traits, b.traits, allowed, problem.beta != 0
    )  # fmt: skip


def choice_for(question: Question, device: int, family: Family | None = None) -> GemmChoice:
    """Return the device's tuned plan, else the candidate of the least estimate, of a family."""
    found = gpu(device)
    measured = _measured(question, device, family)
    if measured is not None:
        return measured
    return choose(
        question, found.require_arch(), found.sm_count, family,
        memory=found.relative_memory,
    )  # fmt: skip


def _measured(question: Question, device: int, family: Family | None) -> GemmChoice | None:
    """Return the device's tuned plan where it is of the family and within the limit, else None."""
    found = tuning.lookup(question, device)
    if found is None or family not in (None, found.family):
        return None
    allowed = question.allowed
    return found if allowed is None or workspace_of(found, question) <= allowed else None


class GemmLaunch:
    """The launches of one product, for operands of these forms at any address.

    Parts of the workspace that a choice leaves open take at most what ``allowed`` leaves.
    """

    def __init__(
        self,
        problem: GemmProblem,
        a: OperandForm,
        b: OperandForm,
        c: Layout | None,
        out: Layout,
        choice: GemmChoice,
        device: Device,
        allowed: int | None = None,
    ) -> None:
        self.choice = choice
        asked, traits = problem.precision, (a.traits, b.traits)
        problem = replace(problem, precision=choice.computed_at(asked))
        if choice.in_tf32 and any(x.layout is None or x.half for x in (a, b)):
            raise PlanError(f"packed operands and pairs are in the format of {asked.name}")
        addend = out if c is None else c
        self._in_place: MmaLaunch | FmaLaunch | None = None
        self._wgmma: WgmmaCall | None = None
        if choice.plan is None:
            self._in_place = _in_place(problem, a, b, addend, out, choice, device, allowed)
            name = in_place_name(self._in_place.plan, problem.precision, *traits)
        else:
            self._wgmma = WgmmaCall(problem, a, b, addend, out, choice, device, allowed)
            name = wgmma_name(choice, self._wgmma.plan, self._wgmma.division, *traits)
        #: The launch's name in records.
        self.name = computed_name(name, asked, problem.precision)

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
        """The launches in place without a scan, of addresses a, b, c, out, 0, 0; else None."""
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


def _in_place(
    problem: GemmProblem, a: OperandForm, b: OperandForm, addend: Layout, out: Layout,
    choice: GemmChoice, device: Device, allowed: int | None,
) -> MmaLaunch | FmaLaunch:  # fmt: skip
    """Return the launches of a choice that reads operands, or copies beside planes, in place."""
    first, second = a.layout or a.copy, b.layout or b.copy
    assert first is not None
    assert second is not None
    if choice.fma is not None:
        return FmaLaunch(problem, first, second, addend, out, device, choice.fma)
    return MmaLaunch(problem, first, second, addend, out, device, choice.tile, allowed)
