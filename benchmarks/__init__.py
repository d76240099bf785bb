"""How long things take: `python -m benchmarks` prints a table with limits, and the ratio to the previous run on this machine."""
