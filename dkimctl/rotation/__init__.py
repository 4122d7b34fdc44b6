"""Key rotation: the specs of successors, and which old keys are retired."""
