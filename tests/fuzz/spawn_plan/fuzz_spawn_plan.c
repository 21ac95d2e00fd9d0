/* In: any bytes, as a message to soulacy-spawn. Out: nothing; what is accepted must hold
 * together: every pointer inside the message, every list ended, every path plain. The
 * size field is set right in a second try, so that the rest is reached. */
#include "sandbox/helper/hplan.h"

#include "base/mem.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        __builtin_trap();
    }
}

static bool inside(const char *p, const char *message, size_t size)
{
    return p >= message && p + strlen(p) < message + size;
}

static void decode(char *message, size_t size, struct hplan *plan)
{
    const char *why = NULL;

    if (!hplan_decode(message, size, plan, &why)) {
        require(why != NULL);
        return;
    }
    for (size_t i = 0; i < plan->nargv; i++) {
        require(inside(plan->argv[i], message, size));
    }
    for (size_t i = 0; i < plan->nenv; i++) {
        require(inside(plan->env[i], message, size));
        require(strchr(plan->env[i], '=') != NULL);
    }
    for (size_t i = 0; i < plan->npaths; i++) {
        require(inside(plan->paths[i].path, message, size));
        require(plan->paths[i].path[0] == '/' && plan->paths[i].path[1] != '\0');
        require(strstr(plan->paths[i].path, "/../") == NULL);
    }
    require(plan->argv[plan->nargv] == NULL && plan->env[plan->nenv] == NULL);
    require(plan->cwd == NULL || inside(plan->cwd, message, size));
    require(plan->work_root == NULL || inside(plan->work_root, message, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hplan *plan = mem_zalloc(sizeof(*plan));
    char *message = size <= WIRE_PLAN_MAX ? mem_alloc(size) : NULL;

    if (plan != NULL && message != NULL && size > 0) {
        memcpy(message, data, size);
        decode(message, size, plan);
        if (size >= sizeof(struct wire_head)) {
            uint32_t own = (uint32_t)size;

            memcpy(message + offsetof(struct wire_head, size), &own, sizeof(own));
            decode(message, size, plan);
        }
    }
    mem_free(message);
    mem_free(plan);
    return 0;
}
