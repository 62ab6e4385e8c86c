"""Results as a person reads them: sentences and tables, for the terminal and for Markdown."""
