/* A library's name in, its functions out. Opens libcurl on demand and never closes it;
 * asks nothing of any network. */
#include "net/curl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

/* POSIX gives functions as void *; memcpy is the conversion ISO C allows. */
static bool take(void *lib, const char *name, void *function, size_t size)
{
    void *found = dlsym(lib, name);

    if (found == NULL || size != sizeof(found)) {
        return false;
    }
    memcpy(function, &found, sizeof(found));
    return true;
}

#define TAKE(api, lib, member) \
    take((lib), "curl_" #member, &(api)->member, sizeof((api)->member))

enum status curl_api_open(struct curl_api *out, struct error *err)
{
    struct curl_api api = {0};
    void *lib = NULL;

    for (size_t i = 0; lib == NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (lib == NULL) {
        return error_set(err, ST_UNSUPPORTED,
                         "this command needs libcurl.so.4, which is not installed (apt "
                         "install libcurl4)");
    }
    if (!TAKE(&api, lib, global_init) || !TAKE(&api, lib, easy_init) ||
        !TAKE(&api, lib, easy_cleanup) || !TAKE(&api, lib, easy_setopt) ||
        !TAKE(&api, lib, easy_getinfo) || !TAKE(&api, lib, easy_perform) ||
        !TAKE(&api, lib, easy_strerror) || !TAKE(&api, lib, slist_append) ||
        !TAKE(&api, lib, slist_free_all)) {
        return error_set(err, ST_UNSUPPORTED, "the libcurl found here lacks functions");
    }
    if (api.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return error_set(err, ST_INTERNAL, "libcurl cannot be prepared");
    }
    *out = api;
    return ST_OK;
}
