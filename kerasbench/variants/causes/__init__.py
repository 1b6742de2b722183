"""The causes: what makes a column slow, one file each, with the alternative that ``explain`` tries."""
