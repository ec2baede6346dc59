"""Images on a GPU: fp64 and fp32 in blocks of directions through cuBLAS."""

from __future__ import annotations

from typing import Any

import cupy

from argand.image.blocks import image_in_blocks, require_hermitian
from argand.image.problem import ImageProblem
from argand.runtime.layout import device_of


def image(problem: ImageProblem, r: Any, x: Any, f: Any, s: Any, out: Any) -> Any:
    """Return the power of a problem whose arguments are checked, on the GPU that holds ``r``.

    ``x``, ``f`` and ``s`` are as in `image_in_blocks`. Raises ValueError for a precision that has
    no kernel, and for covariances that are not Hermitian.
    """
    if not problem.precision.exact_operands:
        raise ValueError(
            f"precision must be one of ['fp64', 'fp32'] on a GPU, got {problem.precision.name!r}"
        )
    with device_of(r):
        require_hermitian(r, cupy)
        return image_in_blocks(problem, r, x, f, s, out, cupy)
