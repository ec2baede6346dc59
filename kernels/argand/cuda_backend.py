"""The GPU side of the API: what `argand.gemm` and `argand.softmax` call for CuPy arrays."""

from argand.cuda_gemm import gemm, gemm_algorithm, pack
from argand.cuda_softmax import softmax

__all__ = ["gemm", "gemm_algorithm", "pack", "softmax"]
