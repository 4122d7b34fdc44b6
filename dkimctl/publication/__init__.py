"""Whether the registered keys are in DNS."""
