"""Errors planted into the code, one at a time, and which of them the tests see.

``python -m tests.mutants`` runs the tests that should see each, as `make test` does, and those that
miss one once more as `make test-all` does. ``--drawn 3 --seed 20261127`` draws three of each group
of files in place of those on the list, and runs the tests of the same folder: what survives there
may be seen by others, or change nothing but speed.
"""
