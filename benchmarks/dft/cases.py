"""The transforms that are measured: the only list of suites, and their operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argand import Device
from argand.dft.method import is_prime

from benchmarks.harness.measuring import array_module

_VALUES = 1 << 27


@dataclass(frozen=True)
class Case:
    """Transforms of one length."""

    batch: int
    length: int


SUITES = {
    "h200": [
        Case(_VALUES // length, length)
        for length in (
            16, 32, 64, 97, 100, 127, 128, 251, 256, 360, 509, 512, 1000, 1009, 1024, 2039, 2048,
            4093, 4096, 8191, 8192, 10_007, 12_000, 16_384, 32_768, 65_536, 131_072, 1 << 20,
        )
    ],
    "primes": [
        Case(_VALUES // length, length) for length in range(67, 510) if is_prime(length)
    ],
    "awkward": [
        Case(_VALUES // length, length)
        for length in (
            254, 262, 508, 762, 899, 1018, 1517, 2018, 3022, 4078, 5003, 8186, 10_609, 12_013,
            13_003, 14_009, 16_382, 20_011, 20_014, 30_011, 57_337, 65_537, 100_003, 262_139,
            524_287, 1_000_003, 1_048_573,
        )
    ],
}  # fmt: skip


def samples(case: Case, seed: int, device: Device) -> Any:
    """Return x of a case on its device, complex64 normal."""
    arrays = array_module(device)
    rng = arrays.random.default_rng(seed)
    parts = rng.standard_normal((case.batch, case.length, 2), dtype=arrays.float32)
    return parts.view(arrays.complex64)[..., 0]
