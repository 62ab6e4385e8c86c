"""The exact front of interactivity against energy per output token: what is possible, and at what price."""
