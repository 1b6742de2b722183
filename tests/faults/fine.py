"""Nothing is wrong with this one."""

from base import scenario

fine = scenario(parameters=10)
