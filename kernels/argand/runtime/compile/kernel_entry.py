"""The entry of a kernel: the ``__global__`` function that a launch names, and words of its symbol.

Nothing here needs a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any

from argand.runtime.compile.dependent_launch import WAIT_FIRST


def kernel_entry(
    name: str, arguments: str, call: str, threads: int, blocks: int | str | None = None, *,
    maps: Sequence[str] = (), cluster: int = 1,
) -> str:  # fmt: skip
    """Return the CUDA C++ of a kernel that makes one call, once the kernel before has ended.

    Args:
        name: its symbol.
        arguments: the structure that it takes as ``args``.
        call: the statement, or several, with ``args`` in it.
        threads: threads of a block.
        blocks: the fewest blocks of a multiprocessor, which limit registers; C++ may decide.
        maps: tensor maps, parameters before ``args``.
        cluster: blocks of a cluster.
    """
    clusters = f"__cluster_dims__({cluster}, 1, 1) " if cluster > 1 else ""
    before = "".join(f"const __grid_constant__ TensorMap {x}, " for x in maps)
    bounds = f"{threads}" if blocks is None else f"{threads}, {blocks}"
    return (
        f'extern "C" __global__ void {clusters}__launch_bounds__({bounds})\n'
        f"{name}({before}const __grid_constant__ {arguments} args) {{\n"
        f"{WAIT_FIRST}"
        f"    {call}\n"
        "}\n"
    )


def symbol_words(plan: Any) -> list[str]:
    """Return the members of a plan, a dataclass, that differ from their defaults, for a symbol.

    Profilers show it. Words and what is true stand alone, a number stands after its name.
    """
    found = []
    for field in fields(plan):
        value = getattr(plan, field.name)
        if field.default is MISSING or value == field.default:
            continue
        if isinstance(value, bool):
            found.append(field.name if value else f"not_{field.name}")
        else:
            found.append(value if isinstance(value, str) else f"{field.name}_{value}")
    return found
