"""Epilogues of the wgmma family's kernels (``Epilogue`` of gemm/sm90_plan.cuh)."""

from __future__ import annotations

from typing import Literal, get_args

Epilogue = Literal[
    "combine", "descale", "descale_rows", "descale_shifted_rows", "descale_columns"
]  # fmt: skip
"""alpha x + beta C; or a descaled x alone, stored at any strides, in whole vectors of rows, of rows
that begin within one, or of columns."""
EPILOGUES: tuple[Epilogue, ...] = get_args(Epilogue)
LETTERS: dict[Epilogue, str] = dict(zip(EPILOGUES, ("", "d", "dn", "ds", "dm"), strict=True))
"""The letter of each epilogue, behind those of the layout in a kernel's name."""
