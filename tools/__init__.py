"""Generators of documents about the project, which are no part of it."""
