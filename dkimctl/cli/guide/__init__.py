"""What `dkimctl` alone says: where the profile stands, and what comes next."""
