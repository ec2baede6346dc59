"""NVIDIA's libraries: their handles and workspace, and routines that CuPy does not bind."""
