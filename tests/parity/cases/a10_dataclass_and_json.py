#: {"needs": "json", "text": "{\"n\": 3}"}
import dataclasses
import json


@dataclasses.dataclass
class Point:
    n: int


def tool():
    return json.loads(json.dumps(dataclasses.asdict(Point(3))))
