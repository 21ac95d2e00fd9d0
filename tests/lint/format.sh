#!/usr/bin/env bash
# Every C file of ours is as clang-format leaves it.
set -u
cd "$(dirname "$0")/../.." || exit 1
if ! command -v clang-format-14 > /dev/null; then
    echo "clang-format-14 is not installed"
    exit 77
fi
git ls-files -z -- '*.c' '*.h' | while IFS= read -r -d '' file; do
    # In the index and gone from the folder: a deletion not committed yet.
    [ ! -e "$file" ] || printf '%s\0' "$file"
done | xargs -0 -r clang-format-14 --dry-run -Werror
