"""The entry of a kernel: the ``__global__`` function that a launch names. Nothing needs a GPU."""

from __future__ import annotations

from collections.abc import Sequence

from argand.runtime.dependent_launch import WAIT_FIRST


def kernel_entry(
    name: str, arguments: str, call: str, threads: int, blocks: int | str | None = None, *,
    maps: Sequence[str] = (), cluster: int = 1,
) -> str:  # fmt: skip
    """Return the CUDA C++ of a kernel that makes one call, once the kernel before has ended.

    Args:
        name: its symbol.
        arguments: the structure that it takes as ``args``.
        call: the statement, or several, with ``args`` in it.
        threads: of a block.
        blocks: of a multiprocessor at least, which limits registers; C++ may decide.
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
