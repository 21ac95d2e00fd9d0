#: {"text": "7", "only": "none"}
import asyncio


async def inner():
    await asyncio.sleep(0)
    return 7


def tool():
    return asyncio.run(inner())
