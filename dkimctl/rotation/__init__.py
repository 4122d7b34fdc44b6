"""Replacing keys: the specs of successors, and which old keys are retired."""
