"""Many small Hermitian positive definite systems, by Cholesky."""
