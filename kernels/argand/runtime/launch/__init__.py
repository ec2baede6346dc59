"""Launches of kernels: arguments, tensor maps, graphs of several, and a stream that is behind."""
