"""What stands in view for messages that went: facts, digest or prose, their frame, and the transcript."""
