"""Pictures that convince a colleague."""

from steelyard.report.pictures import payload_picture

__all__ = ["payload_picture"]
