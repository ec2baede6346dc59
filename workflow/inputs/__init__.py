"""A user's HDF5 files, and what a study says of them, become the operands of a workload."""
