"""What kinds of transforms, filter banks and power spectra share: axes, windows, algorithms."""
