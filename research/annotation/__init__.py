"""What annotate and analyse_human_evaluation call: sampling, tasks, answers, agreement, reports."""
