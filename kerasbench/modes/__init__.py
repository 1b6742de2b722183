"""The modes: what a run is for. Each is a folder named after its command; nothing outside asks for one by its name.

In a folder: what its command takes and its runs are like (``__init__.py``, which ``--help`` loads), what they measure
(``plan.py``), and what is said of them (``tell.py``).
"""
