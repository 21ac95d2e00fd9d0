#: {"text": "[0, \"out\\n\", 3]"}
import subprocess


def tool():
    done = subprocess.run(["sh", "-c", "echo out; exit 0"], stdout=subprocess.PIPE)
    bad = subprocess.run(["sh", "-c", "exit 3"])
    return [done.returncode, done.stdout.decode(), bad.returncode]
