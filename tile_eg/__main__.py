"""`python -m tile_eg` is `tile-eg`."""

from tile_eg.cli import main

main()
