"""The search for evidence that the kernel accepts. Nothing here is trusted: what is wrong is rejected."""
