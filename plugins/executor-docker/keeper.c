/* The keeper: one thread that asks the engine who it is, pins the image, makes stock off
 * the path of calls, deletes what has to go and sweeps what dead gateways left. Comes in:
 * flags and lists under the lock. Goes out: requests, health reports. It never touches a
 * container whose owner may be alive. */
#include "docker.h"

#include <cjson/cJSON.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define PING_MS 2000
#define SWEEP_EVERY_MS 60000
#define PAUSE_MIN_MS 250
#define PAUSE_MAX_MS 5000
#define UNSURE_MS 60000 /* a create that was given up may still come through so late */
#define STOP_MS 10000

static const struct span no_span = {.cancel_fd = -1, .deadline_ms = INT64_MAX};

/* ---- who is the engine? ------------------------------------------------------------------ */

static void report(struct docker *d, int32_t state, const char *text)
{
    d->host->health(d->host->ctx, state, (struct sy_str){text, strlen(text)});
}

static sy_status get(struct docker *d, const char *what, const char *path,
                     const struct span *s, int64_t limit_ms, struct http_reader *r,
                     struct sy_error *err)
{
    const struct request q = {
        .what = what, .method = "GET", .path = path, .limit_ms = limit_ms};
    return engine_call(&d->engine, &q, s, r, err);
}

static const char *text_of(const cJSON *o, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsString(v) ? v->valuestring : "";
}

/* The version to speak, or why there is none. */
static sy_status choose_api(const char *newest, const char *oldest, unsigned *api,
                            struct sy_error *err)
{
    unsigned high = engine_api(newest);
    unsigned low = engine_api(oldest);
    if (high == 0) {
        return util_fail(err, SY_E_IO,
                         "executor unavailable: what answers on "
                         "executor.docker_socket tells no API version");
    }
    if (high < API_OLDEST) {
        return util_fail(err, SY_E_IO,
                         "executor unavailable: the engine's API is %s, 1.%d or newer is "
                         "needed; update the engine",
                         newest, API_OLDEST);
    }
    if (low > API_NEWEST) {
        return util_fail(err, SY_E_IO,
                         "executor unavailable: the engine takes API %s or newer, this "
                         "gateway speaks up to 1.%d; update the gateway",
                         oldest, API_NEWEST);
    }
    *api = high < API_NEWEST ? high : API_NEWEST;
    return SY_OK;
}

static sy_status ask_version(struct docker *d, const struct span *s, unsigned *api,
                             char *version, size_t cap, struct sy_error *err)
{
    struct http_reader r;
    char newest[16];
    sy_status st = get(d, "answer /_ping", "/_ping", s, PING_MS, &r, err);
    (void)snprintf(newest, sizeof newest, "%s", r.api_version);
    if (st == SY_OK && r.status != 200) {
        char reason[120];
        engine_reason(&r, reason, sizeof reason);
        st = util_fail(err, SY_E_IO,
                       "executor unavailable: the engine answers /_ping with "
                       "%d %s",
                       r.status, reason);
    }
    http_done(&r);
    if (st != SY_OK) {
        return st;
    }
    st = get(d, "answer /version", "/version", s, PING_MS, &r, err);
    if (st == SY_OK) {
        cJSON *json = cJSON_ParseWithLength(r.body.p != NULL ? r.body.p : "", r.body.n);
        if (newest[0] == '\0') {
            (void)snprintf(newest, sizeof newest, "%s", text_of(json, "ApiVersion"));
        }
        (void)snprintf(version, cap, "%s", text_of(json, "Version"));
        st = choose_api(newest, text_of(json, "MinAPIVersion"), api, err);
        cJSON_Delete(json);
    }
    http_done(&r);
    return st;
}

/* ---- the image --------------------------------------------------------------------------- */

static void forget_image_env(struct docker *d)
{
    for (size_t i = 0; i < d->nimage_env; i++) {
        free(d->image_env[i]);
    }
    free(d->image_env);
    free(d->image_path);
    free(d->image_lang);
    d->image_env = NULL;
    d->image_path = d->image_lang = NULL;
    d->nimage_env = 0;
}

/* Under the lock: names of the image's variables, values of PATH and LANG. */
static bool keep_env(struct docker *d, const cJSON *env)
{
    size_t n = (size_t)cJSON_GetArraySize(env);
    const cJSON *item = NULL;
    forget_image_env(d);
    d->image_env = calloc(n + 1, sizeof *d->image_env);
    if (d->image_env == NULL) {
        return false;
    }
    cJSON_ArrayForEach(item, env)
    {
        const char *text = cJSON_IsString(item) ? item->valuestring : "";
        const char *eq = strchr(text, '=');
        if (eq == NULL || eq == text) {
            continue;
        }
        char *name = util_copy(text, (size_t)(eq - text));
        if (name == NULL) {
            return false;
        }
        char **value = strcmp(name, "PATH") == 0   ? &d->image_path
                       : strcmp(name, "LANG") == 0 ? &d->image_lang
                                                   : NULL;
        if (value != NULL && *value == NULL && strlen(eq + 1) < 4000) {
            *value = util_copy(eq + 1, strlen(eq + 1));
        }
        d->image_env[d->nimage_env++] = name;
    }
    return true;
}

/* Pin it, or see that the pinned one is still the one. */
static sy_status take_image(struct docker *d, const char *text, size_t len, char *id,
                            struct sy_error *err)
{
    cJSON *json = cJSON_ParseWithLength(text, len);
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(json, "Config");
    const char *found = text_of(json, "Id");
    sy_status st = SY_OK;
    (void)pthread_mutex_lock(&d->lock);
    if (found[0] == '\0' || strlen(found) >= sizeof d->image_id) {
        st = util_fail(err, SY_E_IO,
                       "executor unavailable: the engine does not tell the "
                       "id of image %.80s",
                       d->image);
    } else if (d->image_id[0] == '\0' || strcmp(d->image_id, found) == 0) {
        (void)snprintf(d->image_id, sizeof d->image_id, "%s", found);
        if (!keep_env(d, cJSON_GetObjectItemCaseSensitive(config, "Env"))) {
            st = util_fail(err, SY_E_NOMEM, "out of memory");
        }
    }
    (void)snprintf(id, sizeof d->image_id, "%s", d->image_id);
    (void)pthread_mutex_unlock(&d->lock);
    cJSON_Delete(json);
    return st;
}

static sy_status image_gone(struct docker *d, bool pinned, struct sy_error *err)
{
    if (pinned) {
        return util_fail(
            err, SY_E_IO,
            "executor unavailable: the image %.80s that was checked at start "
            "was removed; run: docker pull %.80s, then restart the gateway",
            d->image, d->image);
    }
    return util_fail(
        err, SY_E_IO,
        "executor unavailable: image %.80s is not on the engine; run: docker "
        "pull %.80s",
        d->image, d->image);
}

/* By its name first, then by the id that it was pinned to. */
static sy_status check_image(struct docker *d, unsigned api, const struct span *s,
                             struct sy_error *err)
{
    char path[512];
    char id[sizeof d->image_id];
    (void)pthread_mutex_lock(&d->lock);
    (void)snprintf(id, sizeof id, "%s", d->image_id);
    (void)pthread_mutex_unlock(&d->lock);
    bool pinned = id[0] != '\0';
    for (int round = 0; round < 2; round++) {
        struct http_reader r;
        const char *ask = round == 1 || pinned ? id : d->image;
        (void)snprintf(path, sizeof path, "/v1.%u/images/%s/json", api, ask);
        sy_status st = get(d, "show the image", path, s, STEP_FAST_MS, &r, err);
        if (st == SY_OK && r.status == 404) {
            st = image_gone(d, pinned, err);
        } else if (st == SY_OK && r.status != 200) {
            char reason[120];
            engine_reason(&r, reason, sizeof reason);
            st = util_fail(err, SY_E_IO,
                           "executor unavailable: the engine cannot show the "
                           "image: %d %s",
                           r.status, reason);
        } else if (st == SY_OK) {
            st = take_image(d, r.body.p != NULL ? r.body.p : "", r.body.n, id, err);
            pinned = true;
            round = st == SY_OK ? 2 : round;
        }
        http_done(&r);
        if (st != SY_OK || round == 2) {
            return st;
        }
    }
    return SY_OK;
}

/* ---- up and down -------------------------------------------------------------------------- */

/* Up to a quarter more, so that gateways do not knock in step. */
static int64_t with_jitter(int64_t ms)
{
    unsigned char c = 0;
    (void)!getrandom(&c, 1, GRND_NONBLOCK);
    return ms + ms * c / 1024;
}

static void set_down(struct docker *d, const char *why)
{
    (void)pthread_mutex_lock(&d->lock);
    bool news = d->state != ENGINE_DOWN || strcmp(d->why, why) != 0;
    d->state = ENGINE_DOWN;
    d->epoch++;
    d->suspect = false;
    (void)snprintf(d->why, sizeof d->why, "%s", why);
    d->pause_ms = d->pause_ms < PAUSE_MIN_MS ? PAUSE_MIN_MS : d->pause_ms * 2;
    d->pause_ms = d->pause_ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : d->pause_ms;
    d->retry_ms = engine_now(&d->engine) + with_jitter(d->pause_ms);
    (void)pthread_mutex_unlock(&d->lock);
    if (news) {
        report(d, SY_HEALTH_DOWN, why);
    }
}

static void set_up(struct docker *d, unsigned api, const char *version)
{
    char text[240];
    (void)pthread_mutex_lock(&d->lock);
    bool news = d->state != ENGINE_UP;
    d->state = ENGINE_UP;
    d->suspect = false;
    d->api = api;
    d->pause_ms = 0;
    d->why[0] = '\0';
    (void)snprintf(d->version, sizeof d->version, "%s", version);
    (void)snprintf(text, sizeof text, "engine %s, API 1.%u, image %.80s (%.19s)", version,
                   api, d->image, d->image_id);
    (void)pthread_mutex_unlock(&d->lock);
    if (news) {
        report(d, SY_HEALTH_OK, text);
    }
}

static sy_status connect_engine(struct docker *d, const struct span *s,
                                struct sy_error *err)
{
    unsigned api = 0;
    char version[sizeof d->version] = "";
    sy_status st = ask_version(d, s, &api, version, sizeof version, err);
    if (st == SY_OK) {
        st = check_image(d, api, s, err);
    }
    if (st == SY_OK) {
        set_up(d, api, version);
    } else if (st == SY_E_IO) {
        set_down(d, err->text);
    }
    return st;
}

sy_status keeper_ready(struct docker *d, const struct span *s, struct sy_error *err)
{
    struct sy_error own = {.size = sizeof own};
    (void)pthread_mutex_lock(&d->lock);
    bool up = d->state == ENGINE_UP;
    (void)pthread_mutex_unlock(&d->lock);
    if (up) {
        return SY_OK;
    }
    (void)pthread_mutex_lock(&d->connecting);
    (void)pthread_mutex_lock(&d->lock);
    up = d->state == ENGINE_UP;
    bool wait = d->state == ENGINE_DOWN && engine_now(&d->engine) < d->retry_ms;
    (void)snprintf(own.text, sizeof own.text, "%s", d->why);
    (void)pthread_mutex_unlock(&d->lock);
    sy_status st = up ? SY_OK : wait ? SY_E_IO : connect_engine(d, s, &own);
    (void)pthread_mutex_unlock(&d->connecting);
    if (st != SY_OK) {
        return util_fail(err, st, "%s", own.text);
    }
    keeper_wake(d);
    return SY_OK;
}

sy_status keeper_ask(struct docker *d, const struct span *s, struct sy_error *err)
{
    struct sy_error own = {.size = sizeof own};
    (void)pthread_mutex_lock(&d->connecting);
    sy_status st = connect_engine(d, s, &own);
    (void)pthread_mutex_unlock(&d->connecting);
    return st == SY_OK ? SY_OK : util_fail(err, st, "%s", own.text);
}

void keeper_wake(struct docker *d)
{
    uint64_t one = 1;
    (void)!write(d->wake_fd, &one, sizeof one);
}

void keeper_suspect(struct docker *d)
{
    (void)pthread_mutex_lock(&d->lock);
    d->suspect = true;
    (void)pthread_mutex_unlock(&d->lock);
    keeper_wake(d);
}

/* ---- the janitor -------------------------------------------------------------------------- */

/* "/soulacy-INSTANCE-NUMBER" to its number; 0: not such a name. */
static uint64_t number_of(const struct docker *d, const char *name)
{
    char prefix[64];
    uint64_t number = 0;
    int n = snprintf(prefix, sizeof prefix, "/soulacy-%s-", d->instance);
    if (n <= 0 || strncmp(name, prefix, (size_t)n) != 0 ||
        !util_number(name + n, strlen(name + n), UINT64_MAX, &number)) {
        return 0;
    }
    return number;
}

static bool is_left_over(struct docker *d, const cJSON *item)
{
    const cJSON *labels = cJSON_GetObjectItemCaseSensitive(item, "Labels");
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(item, "Names");
    const cJSON *name = cJSON_GetArrayItem(names, 0);
    enum owner_is who = keeper_owner(text_of(labels, SPEC_LABEL), d->owner);
    if (who != OWNER_SELF) {
        return who == OWNER_DEAD;
    }
    (void)pthread_mutex_lock(&d->lock);
    uint64_t number = cJSON_IsString(name) ? number_of(d, name->valuestring) : 0;
    bool lives = number == 0 || live_has(d, number);
    (void)pthread_mutex_unlock(&d->lock);
    return !lives;
}

static void sweep(struct docker *d)
{
    char path[256];
    struct http_reader r;
    size_t swept = 0;
    docker_path(d, path, sizeof path,
                "/containers/json?all=1&filters=%%7B%%22label%%22%%3A%%5B%%22" SPEC_LABEL
                "%%22%%5D%%7D");
    sy_status st = get(d, "list containers", path, &no_span, STEP_FAST_MS, &r, NULL);
    cJSON *list = NULL;
    if (st == SY_OK && r.status == 200) {
        list = cJSON_ParseWithLength(r.body.p != NULL ? r.body.p : "", r.body.n);
    } else if (st != SY_OK) {
        keeper_suspect(d);
    }
    http_done(&r);
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, list)
    {
        const char *id = text_of(item, "Id");
        if (strlen(id) == 64 && strspn(id, "0123456789abcdef") == 64 &&
            is_left_over(d, item)) {
            trash_name(d, id, 0, true);
            swept++;
        }
    }
    cJSON_Delete(list);
    if (swept > 0) {
        char line[96];
        int n = snprintf(line, sizeof line,
                         "deleting %zu containers that were left behind", swept);
        d->host->log(d->host->ctx, SY_LOG_INFO,
                     (struct sy_str){line, n > 0 ? (size_t)n : 0});
    }
}

/* One that is due, taken out of the list. */
static bool take_trash(struct docker *d, struct trash *out, bool all)
{
    int64_t now = engine_now(&d->engine);
    bool found = false;
    (void)pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->ntrash && !found; i++) {
        if (all || d->trash[i].box != NULL ||
            (d->state == ENGINE_UP && d->trash[i].next_ms <= now)) {
            *out = d->trash[i];
            d->trash[i] = d->trash[--d->ntrash];
            found = true;
        }
    }
    (void)pthread_mutex_unlock(&d->lock);
    return found;
}

static void put_back(struct docker *d, struct trash *t)
{
    (void)pthread_mutex_lock(&d->lock);
    t->next_ms = engine_now(&d->engine) + with_jitter(t->pause_ms);
    t->pause_ms = t->pause_ms * 2 > 30000 ? 30000 : t->pause_ms * 2;
    if (d->ntrash < TRASH_MAX) {
        d->trash[d->ntrash++] = *t;
    }
    (void)pthread_mutex_unlock(&d->lock);
}

static void empty_trash(struct docker *d, int64_t until_ms, bool last)
{
    struct trash t;
    while (engine_now(&d->engine) < until_ms && take_trash(d, &t, last)) {
        bool there = false;
        box_free(t.box); /* closes the stream before the kill */
        t.box = NULL;
        (void)pthread_mutex_lock(&d->lock);
        bool up = d->state == ENGINE_UP;
        (void)pthread_mutex_unlock(&d->lock);
        sy_status st = up ? box_delete(d, t.name, STEP_DELETE_MS, &there) : SY_E_IO;
        bool young = engine_now(&d->engine) - t.since_ms < UNSURE_MS;
        if (st == SY_OK && (there || t.sure || !young)) {
            live_remove(d, t.number);
        } else if (!last) {
            put_back(d, &t);
            if (st != SY_OK && up) {
                keeper_suspect(d);
            }
        }
    }
}

/* ---- the thread ---------------------------------------------------------------------------- */

static void refill(struct docker *d)
{
    struct want *w = stock_next(d);
    if (w == NULL) {
        return;
    }
    struct sy_error err = {.size = sizeof err};
    struct box *b = NULL;
    sy_status st = box_make(d, &w->launch, &no_span, &b, &err);
    if (st == SY_OK) {
        stock_put(d, b);
    }
    (void)pthread_mutex_lock(&d->lock);
    if (st == SY_OK) {
        if (d->refill_ms < engine_now(&d->engine) - 60000) {
            d->refill_pause_ms = 0;
        }
    } else {
        d->refill_pause_ms = d->refill_pause_ms < 250 ? 250 : d->refill_pause_ms * 2;
        d->refill_pause_ms = d->refill_pause_ms > 30000 ? 30000 : d->refill_pause_ms;
        d->refill_ms = engine_now(&d->engine) + with_jitter(d->refill_pause_ms);
    }
    (void)pthread_mutex_unlock(&d->lock);
    if (st != SY_OK) {
        d->host->log(d->host->ctx, SY_LOG_WARN,
                     (struct sy_str){err.text, strlen(err.text)});
    }
    want_free(w);
}

/* See that it is there, or look for it when it is time. */
static bool look_at_engine(struct docker *d)
{
    struct sy_error err = {.size = sizeof err};
    (void)pthread_mutex_lock(&d->lock);
    bool suspect = d->suspect && d->state == ENGINE_UP;
    (void)pthread_mutex_unlock(&d->lock);
    if (suspect) {
        (void)pthread_mutex_lock(&d->connecting);
        (void)connect_engine(d, &no_span, &err);
        (void)pthread_mutex_unlock(&d->connecting);
    } else {
        (void)keeper_ready(d, &no_span, &err);
    }
    (void)pthread_mutex_lock(&d->lock);
    bool up = d->state == ENGINE_UP;
    (void)pthread_mutex_unlock(&d->lock);
    if (!up) {
        stock_clear(d);
    }
    return up;
}

/* When something is due by the clock. */
static int next_timeout(struct docker *d, int64_t sweep_ms)
{
    int64_t now = engine_now(&d->engine);
    (void)pthread_mutex_lock(&d->lock);
    int64_t due = d->state == ENGINE_UP ? sweep_ms : d->retry_ms;
    for (size_t i = 0; i < d->ntrash && d->state == ENGINE_UP; i++) {
        due = d->trash[i].next_ms < due ? d->trash[i].next_ms : due;
    }
    if (d->refill_ms > now && d->refill_ms < due) {
        due = d->refill_ms;
    }
    if (d->suspect) {
        due = now;
    }
    (void)pthread_mutex_unlock(&d->lock);
    return due <= now                   ? 0
           : due - now > SWEEP_EVERY_MS ? SWEEP_EVERY_MS
                                        : (int)(due - now);
}

/* Until there is something to do: woken, a box in stock ended, or time. */
static void sleep_until_due(struct docker *d, int64_t sweep_ms)
{
    struct pollfd p[STOCK_MAX + 1] = {{.fd = d->wake_fd, .events = POLLIN}};
    nfds_t n = 1;
    uint64_t count;
    (void)pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->nstock; i++) {
        p[n++] = (struct pollfd){.fd = d->stock[i]->attach_fd, .events = POLLIN};
    }
    (void)pthread_mutex_unlock(&d->lock);
    (void)poll(p, n, next_timeout(d, sweep_ms));
    (void)!read(d->wake_fd, &count, sizeof count);
}

static bool is_stopping(struct docker *d)
{
    (void)pthread_mutex_lock(&d->lock);
    bool stopping = d->stopping;
    (void)pthread_mutex_unlock(&d->lock);
    return stopping;
}

static void *keep(void *arg)
{
    struct docker *d = arg;
    unsigned swept_epoch = UINT32_MAX;
    int64_t sweep_ms = 0;
    while (!is_stopping(d)) {
        bool up = look_at_engine(d);
        (void)pthread_mutex_lock(&d->lock);
        unsigned epoch = d->epoch;
        (void)pthread_mutex_unlock(&d->lock);
        if (up && (epoch != swept_epoch || engine_now(&d->engine) >= sweep_ms)) {
            swept_epoch = epoch;
            sweep_ms = engine_now(&d->engine) + SWEEP_EVERY_MS;
            sweep(d);
        }
        stock_tidy(d);
        if (up) {
            refill(d);
        }
        empty_trash(d, engine_now(&d->engine) + 1000, false);
        struct want *more = up ? stock_next(d) : NULL;
        if (more == NULL) {
            sleep_until_due(d, sweep_ms);
        }
        want_free(more);
    }
    return NULL;
}

sy_status keeper_start(struct docker *d, struct sy_error *err)
{
    if (pthread_create(&d->keeper, NULL, keep, d) != 0) {
        return util_fail(err, SY_E_NOMEM, "no thread for the keeper of containers");
    }
    d->started = true;
    return SY_OK;
}

void keeper_stop(struct docker *d)
{
    (void)pthread_mutex_lock(&d->lock);
    d->stopping = true;
    (void)pthread_mutex_unlock(&d->lock);
    keeper_wake(d);
    if (d->started) {
        (void)pthread_join(d->keeper, NULL);
        d->started = false;
    }
    stock_clear(d);
    empty_trash(d, engine_now(&d->engine) + STOP_MS, true);
}
