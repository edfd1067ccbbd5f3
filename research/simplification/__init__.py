"""Measures for report_simplifications."""
