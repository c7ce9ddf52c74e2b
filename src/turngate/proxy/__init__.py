"""The proxy: any agent that can be given a base URL, four formats, streams, replicas."""
