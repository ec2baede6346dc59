"""Plans of any operation: the forced, the tuned, and those in files."""
