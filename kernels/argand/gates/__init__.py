"""Qubit gates and circuits on state vectors."""
