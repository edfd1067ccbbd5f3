"""What compare_metrics calls: data sets, scores, agreement, attribution."""
