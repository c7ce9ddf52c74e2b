"""What to send upstream for a request: what was sent before as it was, what is new as it is decided now."""
