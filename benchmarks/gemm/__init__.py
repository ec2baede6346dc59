"""Complex products: ours and the libraries, and rooflines: ``python -m benchmarks.gemm``."""
