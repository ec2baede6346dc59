"""The outcome of a run: the answer of a study, its manifest, tables after a failure, leftovers."""
