"""When the instructions of a run happen: what the simulator executed, timed by the same engine as programs are."""
