"""Errors planted into the code, one at a time, and which of them the tests see.

``python -m tests.mutants`` runs the tests that should see each, as `make test` does, and those that
miss one once more as `make test-all` does.
"""
