"""What report_simplifications measures and reports."""
