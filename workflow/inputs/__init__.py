"""What a user brings: HDF5 files, and what a study says of them, to the operands of a workload."""
