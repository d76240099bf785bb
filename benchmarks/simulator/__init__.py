"""How much processor time and memory the simulator takes for large kernels, beside NumPy on the same arrays."""
