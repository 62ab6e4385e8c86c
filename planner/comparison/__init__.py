"""Two plans side by side: what changed, and what each bears when a server is lost or demand grows."""
