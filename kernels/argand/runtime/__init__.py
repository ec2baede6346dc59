"""Compiling, launching, timing and files, for every operation. Imports none of them."""
