"""What annotate and analyse_human_evaluation call: sampling, sheets, agreement, adjudication, reports."""
