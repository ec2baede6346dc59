"""The steps of the pipeline, and what every job needs around its one call."""
