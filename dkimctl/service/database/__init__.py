"""Where the service keeps its data: the tables, the SQLite file, and their upgrades."""
