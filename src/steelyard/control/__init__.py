"""What a known payload is good for."""
