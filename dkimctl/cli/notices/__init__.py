"""Tell people of problems that a command finds: see `dkimctl.publication.notices`."""
