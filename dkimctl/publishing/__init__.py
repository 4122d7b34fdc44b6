"""Put the registered records into DNS, and remove retired ones."""
