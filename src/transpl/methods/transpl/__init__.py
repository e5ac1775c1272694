"""TransPL, the paper's method (Kim and Lee, ICML 2025), and two variants of it."""
