"""Sizes drawn at random: how often ours are slower than the best library, and by how much."""
