"""Calls on a GPU: layouts of arrays, the cache of earlier calls, kept calls and call plans."""
