"""Calls on NumPy arrays: caches and memory of theirs, threads, BLAS and LAPACK."""
