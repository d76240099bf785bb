"""TileLang's `utils`."""
