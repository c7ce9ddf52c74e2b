"""A plugin of the host for tests: a tool whose answer has 1.3 MB."""

LINES = 100_000


def report():
    return "".join(f"row {number:06}\n" for number in range(1, LINES + 1))


def register(ctx):
    ctx.register_tool(
        name="giant_report",
        toolset="giant",
        schema={
            "name": "giant_report",
            "description": "All rows.",
            "parameters": {"type": "object", "properties": {}},
        },
        handler=lambda args, **_: report(),
    )
