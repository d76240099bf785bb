"""The exit codes of `tile-eg`."""

GOOD, USER_ERROR, OUR_ERROR = 0, 1, 2
INTERRUPTED = 130
"""Ctrl-C ended the command, or nobody reads what it prints."""
