"""HTML pages for people without a terminal: each is one file, and fetches nothing."""
