"""What is run once: fits, models that ship, comparisons, annotation, other papers, benchmarks."""

if __name__ != "gaixie.research":  # under two names every class would be there twice
    raise ImportError("import gaixie.research, not research")
