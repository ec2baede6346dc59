"""The kernel of images of few antennas by fp32. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import size_check

MAX_ANTENNAS = 24
"""Antennas whose weights a thread holds in registers."""
_TWO_DIRECTIONS = 12
"""Antennas up to which it holds those of two directions."""
_FOUR_IMAGES = 16
"""Antennas up to which four images share weights; of more, weights cost little beside products."""
_THREADS = 128
# FewAntennasArguments of cuda/image/few_antennas_kernel.cuh.
FEW_ANTENNAS_ARGUMENTS = (
    ("const float2*", "covariances"), ("const double*", "positions"), ("const double*", "scales"),
    ("const double*", "directions"), ("const uint32*", "largest"), ("float*", "power"),
    ("double", "longest_square"), ("int", "images"), ("int", "channels"),
    ("int", "direction_count"), ("int", "splits"),
)  # fmt: skip


@dataclass(frozen=True)
class FewAntennasPlan:
    """A plan of the kernel of few antennas, which is compiled for their number.

    Attributes:
        antennas: antennas of the problem.
        images: matrices of a channel that share the weights of a thread, 1, 2 or 4.
    """

    antennas: int
    images: int

    @property
    def thread_directions(self) -> int:
        """Directions of a thread, for which it reads each number of a matrix once."""
        return 2 if self.antennas <= _TWO_DIRECTIONS else 1

    @property
    def directions(self) -> int:
        """Directions of a block."""
        return self.thread_directions * _THREADS

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return _THREADS

    @property
    def blocks(self) -> int:
        """Fewest blocks per multiprocessor, which limit a thread's registers."""
        return 4


def choose_few_antennas_plan(antennas: int, images: int) -> FewAntennasPlan | None:
    """Return the plan for these numbers of antennas and images; None for too many antennas."""
    if antennas > MAX_ANTENNAS:
        return None
    most = 4 if antennas <= _FOUR_IMAGES else 2
    return FewAntennasPlan(antennas, 1 if images == 1 else 2 if images == 2 else most)


def few_antennas_kernel_name(plan: FewAntennasPlan) -> str:
    """Return the name of the kernel."""
    return f"image_fp32_{plan.antennas}x{plan.images}"


def few_antennas_source(plan: FewAntennasPlan) -> str:
    """Return the CUDA C++ of the kernel."""
    kernel = f"FewAntennasKernel<{plan.antennas}, {plan.images}, {plan.thread_directions}>"
    return (
        '#include "image/few_antennas_kernel.cuh"\n'
        f"{size_check('FewAntennasArguments', FEW_ANTENNAS_ARGUMENTS)}"
        f"using Kernel = {kernel};\n"
        f"static_assert(Kernel::kThreads == {plan.threads} &&\n"
        f"              Kernel::kBlockDirections == {plan.directions});\n"
        + kernel_entry(
            few_antennas_kernel_name(plan), "FewAntennasArguments", "Kernel::run(args);",
            plan.threads, plan.blocks,
        )
    )  # fmt: skip
