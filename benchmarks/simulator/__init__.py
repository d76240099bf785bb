"""How much processor time the simulator takes for large kernels, beside NumPy on the same arrays."""
