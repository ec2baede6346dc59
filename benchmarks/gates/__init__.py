"""Gates and circuits: ours and the libraries, costs, truncation: ``python -m benchmarks.gates``."""
