"""A door: the plugin of the Hermes agent. Hooks, tools, commands and context engine lead to one gate."""
