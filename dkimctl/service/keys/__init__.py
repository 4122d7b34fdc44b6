"""Key pairs: how they are made, and how private keys are encrypted."""
