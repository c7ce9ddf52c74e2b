"""What happens when a conversation outgrows the window: budget, cut, compaction, honesty."""
