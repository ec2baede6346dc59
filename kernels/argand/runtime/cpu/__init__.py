"""Calls on NumPy arrays: their caches and memory, threads, BLAS and LAPACK."""
