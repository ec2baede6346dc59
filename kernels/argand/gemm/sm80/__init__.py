"""Products by mma.sync, on every card: plans, times, launches.

`plan` says what a kernel is, `tiles` and `slices` list those that are tried, `legality` says which
can run, and `heuristics`, with `costs` and `occupancy`, chooses one by its time. `launch` has the
launches of a product, whose kernel is compiled from `source`.
"""
