"""Code that is run once: fits, models that ship, comparisons, papers, benchmarks."""

if __name__ != "gaixie.research":  # imported under two names, every class would exist twice
    raise ImportError("import gaixie.research, not research")
