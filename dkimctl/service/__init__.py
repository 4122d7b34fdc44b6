"""The embedded service: the whole of the interface as a WSGI application.

It imports nothing of the client, so that the two sides cannot share a mistake. Its
modules need the extra `service`; `app.create_app` puts them together.
"""
