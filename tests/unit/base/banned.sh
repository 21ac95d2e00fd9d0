#!/bin/sh
# Each banned function must not compile, with this compiler, whatever the feature macros;
# and the system headers themselves must. Usage: banned.sh CC
cc=${1:-cc}
header=${SOULACY_SOURCE_DIR:-$(dirname "$0")/../../..}/core/base/banned.h
failed=0

# compiles FLAGS HEADER STATEMENT
compiles() {
    printf '#include <%s>\nvoid f(char *a, char *b);\nvoid f(char *a, char *b)\n{\n(void)a;\n(void)b;\n%s;\n}\n' \
        "$2" "$3" | $cc $1 -std=c17 -c -o /dev/null -x c -include "$header" - 2>/dev/null
}

# In clang's fortified headers two of them are macros for built-ins, hence no -O2 there.
for flags in "-D_POSIX_C_SOURCE=200809L" "-D_GNU_SOURCE"; do
    while read -r include statement; do
        if compiles "$flags" "$include" "$statement"; then
            echo "compiles with $flags: $statement"
            failed=1
        fi
    done <<'LIST'
string.h strcpy(a, b)
string.h strcat(a, b)
string.h strncpy(a, b, 2)
string.h strncat(a, b, 2)
string.h strtok(a, b)
stdio.h sprintf(a, "%s", b)
stdio.h sscanf(a, "%s", b)
stdio.h popen(a, b)
stdio.h tmpnam(a)
stdio.h gets(a)
stdlib.h (void)atoi(a)
stdlib.h (void)atol(a)
stdlib.h (void)atoll(a)
stdlib.h (void)strtol(a, 0, 10)
stdlib.h (void)strtoll(a, 0, 10)
stdlib.h (void)strtoul(a, 0, 10)
stdlib.h (void)strtoull(a, 0, 10)
stdlib.h (void)rand()
stdlib.h (void)system(a)
stdlib.h (void)mktemp(a)
stdlib.h setenv(a, b, 1)
stdlib.h putenv(a)
alloca.h (void)alloca(4)
time.h (void)gmtime(0)
time.h (void)localtime(0)
time.h (void)asctime(0)
time.h (void)ctime(0)
unistd.h (void)access(a, 1)
stdarg.h va_list v; vsprintf(a, b, v)
LIST
    for include in stdio.h stdlib.h string.h time.h unistd.h alloca.h; do
        if ! compiles "$flags" "$include" "(void)0"; then
            echo "does not compile with $flags: <$include>"
            failed=1
        fi
    done
done
# A member of the same name is no call.
compiles "" stdlib.h "struct policy { int system; } p = {1}; (void)p.system" || {
    echo "a member named system does not compile"
    failed=1
}
exit $failed
