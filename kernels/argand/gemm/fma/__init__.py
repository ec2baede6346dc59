"""Products of a short k in fp32 registers: plans, times, launches."""
