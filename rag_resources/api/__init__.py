"""The HTTP API: a thin face of the use cases, beside `cli`.

`app` builds it and `running` serves it; the endpoints are in `routes`.
"""
