"""Products on Hopper by wgmma: plans, times, launches.

`plan` says what a kernel is, `tiles` lists those that are tried, `legality` says which can run, and
`heuristics`, with `start_times`, `mainloop_times` and `epilogue_times`, how long each takes. `call`
has the launches of a product; that of the kernel is `launch`, which completes the plan by
`launch_plan`, divides tiles among blocks by `scheduler`, and compiles `source`.
"""
