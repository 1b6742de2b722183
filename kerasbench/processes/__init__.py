"""The parent's side of a child process: start it, listen to it, limit it, stop it, say why it ended.

Imports backends (for their variables), host, protocol, files and text. It knows no plan, no result file and no page.
"""
