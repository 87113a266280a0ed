"""References of compiled kernels: slow and obvious, what the kernels are held to."""
