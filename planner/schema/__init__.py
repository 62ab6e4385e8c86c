"""Strict, frozen, versioned documents: catalog and scenario (read), plan and evaluation (written)."""
