"""The fleet of the demo: a dozen agents that really work, and the person who gives them something to do.

They know what every agent and every operator knows: the client of an agent, and the operations. They run in a
process of their own, `python -m agent_console.demo`, which ends with the program that started it.
"""
