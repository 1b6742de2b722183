"""Where a child has its scenario from: a scenario file, a saved model, or a name in keras.applications.

A saved model is opened here and nowhere else. Imports what the worker imports, and nothing of its trials and questions.
"""
