"""From files and flags to a frozen Scenario. Files end here."""
