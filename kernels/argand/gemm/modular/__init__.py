"""Exact complex products by residues of integers."""
