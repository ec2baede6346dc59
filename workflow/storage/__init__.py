"""Files: HDF5 with checksums in and out, whole or not there."""
