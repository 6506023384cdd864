"""Robots of the Unsupervised Reinforcement Learning Benchmark, as Gymnasium environments and stepped in batches by threads."""
