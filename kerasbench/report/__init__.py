"""Drawing: tables and progress. Nothing here computes."""
