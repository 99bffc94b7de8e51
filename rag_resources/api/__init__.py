"""The HTTP API: a thin layer over the use cases, as `cli` is.

`app` builds it and `running` serves it; the endpoints are in `routes`.
"""
