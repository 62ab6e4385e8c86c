"""Which numbers move the answer, and where the placement switches."""
