"""The GPU side of the products: what `argand.gemm` calls for CuPy arrays."""

from argand.cuda_gemm import gemm, gemm_algorithm, pack

__all__ = ["gemm", "gemm_algorithm", "pack"]
