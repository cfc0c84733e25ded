"""``python -m trueup`` is the command ``trueup``."""

from trueup.cli.main import main

if __name__ == "__main__":
    main()
