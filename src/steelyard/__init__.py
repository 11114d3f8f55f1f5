"""steelyard."""
