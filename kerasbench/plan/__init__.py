"""What will be measured: scenarios to choose from, options, cases, sizes, and how long it takes."""
