"""CUDA's driver as its bindings and ctypes reach it, and CuPy's current stream."""
