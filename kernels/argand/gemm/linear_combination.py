"""Arguments of the elementwise epilogue, alpha x + beta C, as kernels of every family take them.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

# Members that gemm/linear_combination.cuh reads.
LINEAR_COMBINATION: tuple[tuple[str, str], ...] = tuple(
    ("float", name) for name in ("alpha_re", "alpha_im", "beta_re", "beta_im")
)


def linear_combination(alpha: complex, beta: complex) -> dict[str, float]:
    """Return the values of these arguments."""
    return {
        "alpha_re": alpha.real, "alpha_im": alpha.imag, "beta_re": beta.real, "beta_im": beta.imag,
    }  # fmt: skip
