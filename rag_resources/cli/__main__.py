"""Makes `python -m rag_resources.cli` the same as `rag`."""

from rag_resources.cli.main import main

if __name__ == "__main__":
    main()
