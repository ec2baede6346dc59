"""Hermitian rank-k products."""
