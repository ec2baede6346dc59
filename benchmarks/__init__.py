"""Argand and its peers side by side, without Snakemake.

``python -m benchmarks`` lists the programs.
"""
