"""The front by search: Optuna over what the exact methods hold fixed, every trial an exact optimization within it."""
