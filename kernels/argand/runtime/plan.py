"""The error of plans of all operations, and what architectures must have for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from argand.device import Arch
from argand.precision import PRECISIONS, Precision

_Given = ParamSpec("_Given")


class PlanError(ValueError):
    """A plan that its kernel or the architecture cannot run."""


def is_legal(check: Callable[_Given, None], *args: _Given.args, **more: _Given.kwargs) -> bool:
    """Return whether a check of a plan, given what it takes, raises no PlanError."""
    try:
        check(*args, **more)
    except PlanError:
        return False
    return True


Rule = tuple[bool, str]
"""Whether a plan obeys the rule, and the rule in words."""


def check_rules(plan: object, *rules: Rule) -> None:
    """Raise PlanError, which names the rule and the plan, for the first rule that does not hold."""
    for holds, rule in rules:
        if not holds:
            raise PlanError(f"{rule}: {plan}")


WGMMA_TARGET = "sm_90a"
"""The only architecture with wgmma and setmaxnreg."""
MMA_FORMATS = tuple(dict.fromkeys(x.operand.name for x in PRECISIONS.values() if x.operand.ptx))
"""Operand formats of tensor cores."""


def require_precision(precision: Precision, arch: Arch) -> None:
    """Raise PlanError, with the precisions that it has, where an architecture lacks one."""
    if arch.sm < precision.min_sm:
        has = [name for name, row in PRECISIONS.items() if row.min_sm <= arch.sm]
        raise PlanError(
            f"{precision.name} needs compute capability {precision.min_sm / 10:.1f}, and "
            f"{arch.name} has {arch.sm / 10:.1f}, which computes {', '.join(has)}"
        )
