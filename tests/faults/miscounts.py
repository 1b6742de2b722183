from base import scenario

spoiled = scenario(parameters=11)
