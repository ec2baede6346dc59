"""The steps of a study: what a job computes."""
