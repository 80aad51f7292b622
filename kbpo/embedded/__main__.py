"""`python -m kbpo.embedded start|stop|status|wipe`."""

import sys
from collections.abc import Callable, Sequence

from kbpo.embedded import (
    EmbeddedError,
    database_url,
    delete_server_data,
    server_status,
    stop_server,
)


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    verbs: dict[str, Callable[[], object]] = {
        "start": database_url,
        "stop": stop_server,
        "status": server_status,
        "wipe": delete_server_data,
    }
    if len(arguments) != 1 or arguments[0] not in verbs:
        print("Usage: python -m kbpo.embedded start|stop|status|wipe", file=sys.stderr)
        return 2
    try:
        if arguments[0] != "status":
            verbs[arguments[0]]()
        answers = server_status()
    except EmbeddedError as error:
        print(error, file=sys.stderr)
        return 1
    for name, answering in answers.items():
        print(f"{name}: {'running' if answering else 'stopped'}")
    return 0 if arguments[0] != "status" or all(answers.values()) else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
