"""Argand and its peers side by side, without Snakemake."""
