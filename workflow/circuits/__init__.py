"""Quantum circuits: reading and fusing them, the states that they evolve."""
