"""The data sets that `transpl` knows by name, one file each."""
