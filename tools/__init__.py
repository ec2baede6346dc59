"""Generators of documents about the project, which are not part of it."""
