"""Thousands of logs of hundreds of arms: reduced once, merged exactly, watched for changes."""

from steelyard.fleet._fleet import Fleet

__all__ = ["Fleet"]
