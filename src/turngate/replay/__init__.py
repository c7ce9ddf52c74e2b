"""Sessions that have already happened, and what they would have cost."""
