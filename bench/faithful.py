def check(original, body, *, kind):
    return []
