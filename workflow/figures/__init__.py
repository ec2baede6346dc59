"""Figures of a study and of its products, in one style."""
