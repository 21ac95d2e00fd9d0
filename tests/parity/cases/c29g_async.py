#: {"cause": "tool_error", "text": "AsyncFunction: tool() is an async function; a tool is a plain function (it may call asyncio.run itself)"}
async def tool():
    return 1
