"""Its place lets the tests below find `conversations` and `upstream`."""
