"""The common parts of benchmarks beside peers: arguments, cases, clock, conditions, rows."""
