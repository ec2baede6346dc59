"""A job leases its devices, logs and shows its progress here; what it computes is in steps."""
