"""What the compiler is to reach: `python -m benchmarks.targets` holds our schedules against experts' and the machine."""
