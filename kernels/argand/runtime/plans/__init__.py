"""Plans of any operation: overrides, tuned plans, and plans in files."""
