"""From CUDA C++ to kernels: entries, generated instructions, NVRTC, cubins, cache, loading."""
