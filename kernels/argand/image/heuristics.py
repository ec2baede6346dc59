"""The choice of an image's kernel on a GPU. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from argand.device import Device
from argand.image.few_antennas_plan import FewAntennasPlan, choose_few_antennas_plan
from argand.image.plan import MmaImagePlan, check_plan, choose_plan
from argand.image.problem import ImageProblem
from argand.runtime.plan import PlanError
from argand.runtime.plans.plan_override import PlanOverride

Plan = MmaImagePlan | FewAntennasPlan
PLAN_OVERRIDE: PlanOverride[Plan] = PlanOverride()
"""Within ``PLAN_OVERRIDE.use(plan)`` every image takes this plan."""


def plan_image(problem: ImageProblem, device: Device) -> Plan | None:
    """Return the plan of a problem's kernel; None where cuBLAS multiplies blocks of directions.

    Few antennas are imaged in fp32, except at fp64; more on tensor cores, which have no operands of
    fp32. Raises PlanError for a plan override that is not legal, DeviceError for a device without
    the kernel.
    """
    exact, override = problem.precision.exact_operands, PLAN_OVERRIDE.value
    if override is not None and not exact:
        if isinstance(override, MmaImagePlan):
            check_plan(override, problem.precision, device.require_arch())
        elif override.antennas != problem.antennas:
            raise PlanError(f"{override} has other antennas than an image of {problem.antennas}")
        return override
    if exact and (problem.dtype == "float64" or device.arch is None):
        return None
    few = choose_few_antennas_plan(problem.antennas, problem.matrices)
    if few is not None or exact:
        return few
    return choose_plan(problem.precision, device.require_arch())
