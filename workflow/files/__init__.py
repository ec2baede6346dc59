"""A user's files as they are stored: HDF5's datasets, chunks, links, types and text, and errors."""
