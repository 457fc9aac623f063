"""Draw the result of a run as one HTML file; only reads a run directory, never trains."""

from dccm.report.page import write_report

__all__ = ["write_report"]
