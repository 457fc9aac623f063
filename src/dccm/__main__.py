"""`python -m dccm` is the command `dccm`."""

from dccm.cli import main

if __name__ == "__main__":
    main()
