"""The timing engine: what one instruction costs, and when each instruction of a program runs."""
