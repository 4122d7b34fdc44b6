"""The private keys of registrations, exported to where a signer of mail reads them."""
