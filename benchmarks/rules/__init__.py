"""Which kernel needs each rule: it is compiled with and without the rule."""
