"""How methods label target rows: arrays in, arrays out, the same answer each time. No torch, no training."""
