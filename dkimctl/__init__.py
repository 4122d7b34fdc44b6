"""dkimctl: register domains for DKIM signing and carry their records into DNS."""

__version__ = "0.2.0"
