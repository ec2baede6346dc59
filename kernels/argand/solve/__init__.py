"""Dense complex systems: LU factorization by exact products, refined in fp64."""
