"""Index arithmetic as polynomials over atoms, mixed-radix digits, and exact enumeration."""
