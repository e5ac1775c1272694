"""Speed as ratios within one run: `make bench`. Times of different runs or machines are not comparable."""
