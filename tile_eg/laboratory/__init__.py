"""Research on cost models: how well each orders the schedules of real kernels, and what its choice costs."""
