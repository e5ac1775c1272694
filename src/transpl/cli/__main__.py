"""`python -m transpl.cli`."""

from transpl.cli.main import main

main()
