"""The libraries that ours is measured beside, one file each."""
