"""Random functions through passes of mlir-opt: the search for wrong code, and making what was found small."""
