"""What stands in view for messages that went: facts, digest or prose, the frame around it, and the transcript."""
