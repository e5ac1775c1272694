"""`python -m transpl.cli`."""

from transpl.cli.main import main

if __name__ == "__main__":
    main()
