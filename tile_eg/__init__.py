"""tile_eg: a compiler for tile kernels on Ascend NPUs whose scheduling decisions are rewrite rules in an e-graph."""
