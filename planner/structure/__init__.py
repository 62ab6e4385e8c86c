"""Exact answers without a solver, where the problem separates: by enumeration with bounds, vectorised over options."""
