"""Products on Hopper by wgmma: plans, times, launches."""
