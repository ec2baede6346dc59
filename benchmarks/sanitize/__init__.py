"""Small ragged calls of every kernel for compute-sanitizer; ``run.sh`` runs them all."""
