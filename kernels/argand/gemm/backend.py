"""The GPU side of the products: what `argand.gemm` calls for CuPy arrays."""

from argand.gemm.gpu import gemm, gemm_algorithm, pack

__all__ = ["gemm", "gemm_algorithm", "pack"]
