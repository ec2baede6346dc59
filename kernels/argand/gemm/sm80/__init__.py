"""Products by mma.sync, on every card: plans, times, launches."""
