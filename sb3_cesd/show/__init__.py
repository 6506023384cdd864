"""What each skill of a model does: ``python -m sb3_cesd.show MODEL``."""
