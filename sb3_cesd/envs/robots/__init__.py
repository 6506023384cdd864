"""Robots of URLB and METRA, as Gymnasium environments and in batches that are stepped by threads."""
