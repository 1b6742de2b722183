"""The mode ``soak``: does memory grow, and do steps become slower, while a model runs for minutes?"""
