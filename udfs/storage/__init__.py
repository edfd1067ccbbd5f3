"""Files by URI, local copies, manifests, settings files, locks, caches, tables of text and of
pairs, model folders."""
