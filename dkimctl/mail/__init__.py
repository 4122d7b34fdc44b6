"""Verify the DKIM signatures of a mail, and compare them with what is registered."""
