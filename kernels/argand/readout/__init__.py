"""Readout of a state vector: sampled counts, expectation values, marginal probabilities."""
