"""Axes, windows and algorithms that kinds of transforms, filter banks and power spectra share."""
