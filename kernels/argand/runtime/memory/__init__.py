"""Memory on a GPU beside arrays: workspace and its limit, tables, and what captured graphs own."""
