"""The embedded service: the whole interface as a WSGI application.

It shares no code with the client, so that the two cannot share a mistake. Its modules need
the extra `service`; `app.create_app` puts them together.
"""
