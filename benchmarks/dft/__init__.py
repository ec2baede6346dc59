"""Transforms: ours and the libraries, every plan: ``python -m benchmarks.dft``."""
