"""Block sizes that the author left open: candidates, a quick estimate of each, and the few that go the whole way."""
