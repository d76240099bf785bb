"""Programs of published expert schedules: instruction streams with addresses and flags, written as their authors describe them.

`make validate` holds those with a published time against it, `make targets` measures our own schedules by them, and their
tests run them in the simulator.
"""
