"""A card that nothing runs on, and products for its table of measured choices."""

from __future__ import annotations

from argand import PRECISIONS, Device
from argand.device import arch_for
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes, OperandTraits
from argand.gemm.sm90.plan import WgmmaPlan

HOPPER = arch_for(90)
TF32 = PRECISIONS["tf32"]
SIZES = GemmSizes(1, 4096, 4096, 4096)
A, B = OperandTraits(), OperandTraits(k_major=False)
CHOICE = GemmChoice(WgmmaPlan(2, 64, 32, 4, k_major=True))
DEVICE = 0


def card(name: str = "NVIDIA H200", driver: str = "CUDA 13.0") -> Device:
    return Device("cuda", name, DEVICE, HOPPER, 132, driver=driver)
