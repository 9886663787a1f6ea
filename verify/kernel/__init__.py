"""The kernel: accepts or rejects the claims of a certificate. Imports the standard library only; trusts no solver."""
