"""Index arithmetic: normal forms, what is known of variables, and simplification by proved rules."""
