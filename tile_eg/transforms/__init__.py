"""Whole-kernel rewrites that the rule language cannot say, as they change loops and index expressions together: one file each."""
