"""Calls on the CPU at drawn sizes, beside the lines that a user would write."""
