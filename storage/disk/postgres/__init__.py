"""The engine of a store on a PostgreSQL server: a schema of its own, which processes of many hosts share.

url            the name of such a store: a URL of libpq with the further parameter `store`
session        one connection to the server, and the errors of the server in our words
environment    the open store of one process
"""
