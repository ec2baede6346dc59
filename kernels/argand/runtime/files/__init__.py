"""Files that are written whole, that only their user can have written, and that are no links."""
