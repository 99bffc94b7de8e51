"""Documents from the web: lists of addresses, pages with links, and their files."""
