"""What a state vector answers: sampled counts, expectation values, marginal probabilities."""
