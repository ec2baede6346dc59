"""Plans of products in CUDA C++, with checks on the values that it derives from them."""

from __future__ import annotations

import re

from argand.runtime.compile.compiler import compile_cubin
from argand.runtime.plan import WGMMA_TARGET


def plan_in_cuda(source: str, *checks: str) -> str:
    """CUDA C++ that holds a source's plan and compiles where all the checks on it hold."""
    plan = re.search(r"^constexpr \w+ kPlan\{.*\};$", source, re.MULTILINE)
    assert plan is not None
    return plan[0] + "".join(f'\nstatic_assert({check}, "{check}");' for check in checks)


def compile_plans(header: str, plans: list[str]) -> None:
    """Compile what `plan_in_cuda` gives, each in a namespace of its own."""
    apart = "".join(f"namespace plan_{n} {{\n{plan}\n}}\n" for n, plan in enumerate(plans))
    compile_cubin(f'#include "{header}"\n{apart}extern "C" __global__ void f() {{}}', WGMMA_TARGET)
