"""Calls of this checkout beside those of another, in turn."""
