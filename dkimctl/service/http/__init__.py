"""The interface over HTTP: requests read and checked, answers and errors."""
