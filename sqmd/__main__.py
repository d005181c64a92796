"""`python -m sqmd`."""

from sqmd.cli import main

if __name__ == "__main__":
    main()
