"""Ask DNS whether what is published is what was registered."""
