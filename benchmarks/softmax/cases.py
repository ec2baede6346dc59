"""The softmaxes that are measured: the only list of suites, and their operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from argand import Device
from argand.softmax.formats import COMPLEX_KINDS, REAL_KINDS, bf16_bits

from benchmarks.harness.measuring import array_module

KINDS = ("fp32", "fp16", "bf16", "complex64")


@dataclass(frozen=True)
class Case:
    """Rows of one length, and the kinds of their elements and of the result.

    An empty ``written`` is the kind of the elements; of complex ones it is fp32.
    """

    rows: int
    columns: int
    kind: str = "fp32"
    written: str = ""

    @property
    def output(self) -> str:
        """The kind of the result."""
        return self.written or ("fp32" if self.kind in COMPLEX_KINDS else self.kind)


_VALUES = 1 << 29
_WIDTHS = (
    256, 1000, 1024, 4096, 8192, 12289, 16384, 32768, 50257, 65536, 131072, 262144, 524288, 1 << 20,
)  # fmt: skip


def _wide(kind: str, widths: Sequence[int]) -> list[Case]:
    return [Case(_VALUES // columns, columns, kind) for columns in widths]


SUITES = {
    "h200": [
        *_wide("fp32", _WIDTHS), *(Case(rows, 1 << 20) for rows in (1, 8, 64)),
        *_wide("fp16", _WIDTHS),
        *_wide("complex64", (64, 256, 1024, 4096)),
        *_wide("bf16", _WIDTHS),
        *(case for kind in ("fp32", "fp16", "bf16") for case in _wide(kind, (16, 17, 33, 64))),
    ],
}  # fmt: skip


def logits(case: Case, seed: int, scale: float, device: Device) -> Any:
    """Return x of a case on its device, normal; complex ones of standard deviation 1 a part."""
    size = (case.rows, case.columns)
    arrays = array_module(device)
    rng = arrays.random.default_rng(seed)
    if case.kind in COMPLEX_KINDS:
        parts = rng.standard_normal((*size, 2), dtype=arrays.float32)
        return parts.view(arrays.complex64)[..., 0]
    x = rng.standard_normal(size, dtype=arrays.float32)
    x *= arrays.float32(scale)
    if case.kind == "bf16":
        # On a GPU the upper halves: rounding would take memory that the largest cases do not leave.
        return bf16_bits(x) if arrays is np else (x.view("uint32") >> 16).astype("uint16")
    return x.astype(REAL_KINDS[case.kind], copy=False)
