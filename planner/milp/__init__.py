"""The mixed-integer program: variables, one function per constraint, objective, and the boundary to PuLP and HiGHS."""
