"""One interpreter for each backend: which ones a user has named, and how to make them."""
