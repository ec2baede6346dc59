"""Contractions of two complex arrays, written as einsum's, as products."""
