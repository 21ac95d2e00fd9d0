/* Has an agent gained authority? In: the agent as it runs and as its file now says. Out:
 * yes or no, and the first field that grew. Pure. When in doubt the answer is yes: a
 * change that only waits for the operator does no harm. */
#include "config/soul.h"

#include <string.h>

static bool list_has(const struct str_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->items[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Does now name something that was does not? */
static bool list_grew(const struct str_list *was, const struct str_list *now)
{
    for (size_t i = 0; i < now->n; i++) {
        if (!list_has(was, now->items[i])) {
            return true;
        }
    }
    return false;
}

/* A list that admits: absent means all. */
static bool admits_all(const struct opt_list *l)
{
    return !l->present || l->all;
}

static bool admitted_grew(const struct opt_list *was, const struct opt_list *now)
{
    if (admits_all(was)) {
        return false;
    }
    return admits_all(now) || list_grew(&was->list, &now->list);
}

/* A list that grants: absent means none. */
static bool granted_grew(const struct opt_list *was, const struct opt_list *now)
{
    return !was->all && (now->all || list_grew(&was->list, &now->list));
}

/* The two MCP lists: both absent = all; when one is there, the other may be absent. */
static bool mcp_all(const struct soul *s)
{
    return (!s->mcp_servers.present && !s->mcp_tools.present) || s->mcp_servers.all ||
           s->mcp_tools.all;
}

static bool mcp_grew(const struct soul *was, const struct soul *now)
{
    if (mcp_all(now)) {
        return !mcp_all(was);
    }
    if (mcp_all(was)) {
        /* A tool list narrows a server: taking it away from under one widens. */
        return false;
    }
    bool narrowed_less = was->mcp_tools.present && !now->mcp_tools.present;
    bool dropped = list_grew(&now->mcp_tools.list, &was->mcp_tools.list);
    return narrowed_less || dropped ||
           list_grew(&was->mcp_servers.list, &now->mcp_servers.list) ||
           list_grew(&was->mcp_tools.list, &now->mcp_tools.list);
}

/* A list that asks: less in it is more authority. */
static bool asks_less(const struct opt_list *was, const struct opt_list *now)
{
    if (now->all) {
        return false;
    }
    return was->all || list_grew(&now->list, &was->list);
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_code(const struct soul_tool *a, const struct soul_tool *b)
{
    return same_text(a->python_file, b->python_file) &&
           same_text(a->inline_src, b->inline_src) && same_text(a->function, b->function);
}

static bool tools_grew(const struct soul *was, const struct soul *now)
{
    for (size_t i = 0; i < now->ntools; i++) {
        const struct soul_tool *t = &now->tools[i];
        const struct soul_tool *before = soul_tool_find(was, str_c(t->name));
        if (before == NULL || !same_code(before, t)) {
            return true;
        }
    }
    return false;
}

/* Depth is bounded by the parser. */
static bool same_tree(const struct yaml_node *a, const struct yaml_node *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    if (a->kind != b->kind || a->quoted != b->quoted || !str_eq(a->text, b->text) ||
        !str_eq(a->key, b->key)) {
        return false;
    }
    const struct yaml_node *i = a->first;
    const struct yaml_node *j = b->first;
    while (i != NULL && j != NULL) {
        if (!same_tree(i, j)) {
            return false;
        }
        i = i->next;
        j = j->next;
    }
    return i == j;
}

static bool guard_dropped(const struct soul *was, const struct soul *now)
{
    struct str old = secret_expose(&was->passphrase);
    return old.len != 0 && !secret_matches(&now->passphrase, old);
}

/* The first field that grew, or NULL. */
static const char *first_grown(const struct soul *was, const struct soul *now)
{
    const struct {
        const char *field;
        bool grew;
    } checks[] = {
        {"system", now->system && !was->system},
        {"env", list_grew(&was->env, &now->env)},
        {"confirm_tools", asks_less(&was->confirm_tools, &now->confirm_tools)},
        {"unattended", now->unattended && !was->unattended},
        {"execution.backend", !same_text(was->backend, now->backend)},
        {"agents", list_grew(&was->agents, &now->agents)},
        {"mcp_servers and mcp_tools", mcp_grew(was, now)},
        {"builtins", admitted_grew(&was->builtins, &now->builtins)},
        {"knowledge", granted_grew(&was->knowledge, &now->knowledge)},
        {"channels", admitted_grew(&was->channels, &now->channels)},
        {"trigger", was->trigger != now->trigger},
        {"llm.base_url",
         now->llm.base_url != NULL && !same_text(was->llm.base_url, now->llm.base_url)},
        {"security.passphrase", guard_dropped(was, now)},
        {"tools", tools_grew(was, now)},
        {"workflow", now->workflow != NULL && !same_tree(was->workflow, now->workflow)},
        {"enabled", now->enabled && !was->enabled},
    };
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        if (checks[i].grew) {
            return checks[i].field;
        }
    }
    return NULL;
}

bool soul_grows(const struct soul *was, const struct soul *now, struct error *why)
{
    const char *field = first_grown(was, now);
    if (field == NULL) {
        return false;
    }
    error_set(why, ST_REFUSED, "%s", field);
    return true;
}
