"""`python -m rag_resources.cli` is `rag`."""

from rag_resources.cli.main import main

if __name__ == "__main__":
    main()
