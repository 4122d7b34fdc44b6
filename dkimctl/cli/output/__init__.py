"""How commands show results and messages: formats, destinations, and the two streams."""
