"""`python -m squirrel_server`."""

from squirrel_server.cli import main

if __name__ == "__main__":
    main(prog_name="squirrel-server")
