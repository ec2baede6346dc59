"""Complex products: ours and the libraries, rooflines, profiles: ``python -m benchmarks.gemm``."""
