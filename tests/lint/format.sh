#!/usr/bin/env bash
# Every C file of ours is as clang-format leaves it.
set -u
cd "$(dirname "$0")/../.." || exit 1
if ! command -v clang-format-14 > /dev/null; then
    echo "clang-format-14 is not installed"
    exit 77
fi
# Without git (a tarball) all there is, but for what a build leaves.
mapfile -d '' -t files < <(git ls-files -z -- '*.c' '*.h' 2> /dev/null)
if [ ${#files[@]} -eq 0 ]; then
    mapfile -d '' -t files < <(find . -name build -prune -o -name '*.[ch]' -print0)
fi
present=()
for file in "${files[@]}"; do
    # In the index and gone from the folder: a deletion not committed yet.
    [ ! -e "$file" ] || present+=("$file")
done
echo "${#present[@]} files"
exec clang-format-14 --dry-run -Werror "${present[@]}"
