"""Complex matrix products."""
