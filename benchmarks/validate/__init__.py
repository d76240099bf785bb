"""Public measurements of kernels whose schedule is stated, against what the timing engine predicts for the same schedule."""
