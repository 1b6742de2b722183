"""The mode ``fastest``: many settings race, and the slow ones leave round by round."""
