"""Spectral estimates: the power of windowed, overlapping segments, and its mean over groups."""
