"""Which plan a transform takes on a GPU, and every plan worth measuring. Needs no GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from argand.device import Arch
from argand.dft_method import LARGEST_FUSED, Method
from argand.dft_plan import (
    ConvolutionPlan,
    DensePlan,
    Plan,
    ProductPlan,
    folded_tiles,
    is_legal,
)
from argand.precision import Precision

_ENOUGH_WARPS = 8
"""Of a multiprocessor, that hide each other's latencies."""
_MOST_WARPS = 16


@dataclass(frozen=True)
class Choice:
    """How a transform runs on a GPU.

    ``plan`` is None where cuFFT computes it; ``why`` says so in words.
    """

    plan: Plan | None
    why: str

    def __str__(self) -> str:
        return f"cufft: {self.why}" if self.plan is None else f"{self.plan.kind}: {self.why}"


@lru_cache(maxsize=1024)
def choose(method: Method | None, precision: Precision, arch: Arch, *, wide: bool) -> Choice:
    """The plan of a transform; ``wide`` says whether its rows can be copied by 16 bytes."""
    if method is None:
        return Choice(None, f"{precision.name} has no tensor-core products")
    if method.length == 1:
        return Choice(None, "one number is its own transform")
    plan = own_plan(method, precision, arch, wide=wide)
    if plan is None:
        return Choice(None, f"no plan fits {method} at {precision.name} on {arch.target}")
    return Choice(plan, f"{method} at {precision.name}")


def own_plan(method: Method, precision: Precision, arch: Arch, *, wide: bool) -> Plan | None:
    """The best of our own plans; None where there is none."""
    found = candidates(method, precision, arch, wide=wide)
    return max(found, key=_score) if found else None


def _score(plan: Plan) -> tuple[int, ...]:
    """Enough warps first, then places to load ahead, then large tiles shared by few warps."""
    resident = not isinstance(plan, DensePlan) or plan.resident
    warps = plan.groups * plan.warps
    if isinstance(plan, ConvolutionPlan):
        return (True, True, warps, plan.groups, 0)
    return (plan.buffers > 1, resident, min(warps, _ENOUGH_WARPS), plan.buffers, -plan.warps)


def candidates(method: Method, precision: Precision, arch: Arch, *, wide: bool) -> list[Plan]:
    """Every plan worth measuring."""
    if method.kind == "dense":
        every: Iterator[Plan] = _dense(method.length, wide)
    elif method.kind == "product" and all(part.kind == "dense" for part in method.parts):
        first, second = (part.length for part in method.parts)
        every = _product(first, second, wide)
    elif method.kind in ("rader", "bluestein"):
        every = _convolution(method)
    else:
        return []
    found: dict[Plan, None] = {}
    for plan in every:
        if is_legal(plan, precision, arch):
            found[plan] = None
    held = {plan: None for plan in found if not isinstance(plan, DensePlan) or plan.resident}
    return _most_groups(list(held or found))  # tables are streamed where they do not fit alone


def _dense(length: int, wide: bool) -> Iterator[Plan]:
    for warps in (1, 2, 3, 4, 6, 8, 12, 16):
        if warps > 1 and folded_tiles(length, warps) == folded_tiles(length, warps - 1):
            continue  # no fewer columns for each
        for rows in (1, 2):
            for buffers in (1, 2, 3):
                for resident in (True, False):
                    for groups in range(1, _MOST_WARPS // warps + 1):
                        yield DensePlan(length, warps, rows, groups, buffers, resident, wide)


def _product(first: int, second: int, wide: bool) -> Iterator[Plan]:
    if max(first, second) > LARGEST_FUSED:
        return
    for rows in (1, 2):
        warps = -(-second // (16 * rows))
        for buffers in (1, 2, 3):
            for groups in range(1, _MOST_WARPS // warps + 1):
                yield ProductPlan(first, second, warps, rows, groups, buffers, wide)


def _convolution(method: Method) -> Iterator[Plan]:
    inner = method.parts[0]
    if inner.kind != "product" or any(part.kind != "dense" for part in inner.parts):
        return
    first, second = (part.length for part in inner.parts)
    if max(first, second) > LARGEST_FUSED:
        return
    for most in (1, 2):  # sixteens that a warp holds
        warps = -(-max(first, second) // (16 * most))
        rows, back = (-(-n // (16 * warps)) for n in (second, first))
        for groups in range(1, _MOST_WARPS // warps + 1):
            yield ConvolutionPlan(
                method.length, method.kind == "rader", first, second, warps, rows, back, groups
            )


def _most_groups(plans: list[Plan]) -> list[Plan]:
    """Of plans that differ in their groups alone those with the most."""
    found: dict[tuple[object, ...], Plan] = {}
    for plan in plans:
        key = tuple(getattr(plan, name) for name in plan.__dataclass_fields__ if name != "groups")
        if key not in found or found[key].groups < plan.groups:
            found[key] = plan
    return list(found.values())
