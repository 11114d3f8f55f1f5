"""Pictures that convince a colleague."""

from steelyard.report.identification import identification_picture
from steelyard.report.pictures import payload_picture

__all__ = ["identification_picture", "payload_picture"]
