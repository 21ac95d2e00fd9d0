/* libcurl's functions as found by name at run time. Private to core/net. */
#ifndef SOULACY_NET_CURL_H
#define SOULACY_NET_CURL_H

#include "base/error.h"

#include <curl/curl.h>

/* The header's checking macros stand for functions that are not linked here. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

struct curl_api {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *h);
    CURLcode (*easy_setopt)(CURL *h, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *h, CURLINFO info, ...);
    CURLcode (*easy_perform)(CURL *h);
    const char *(*easy_strerror)(CURLcode code);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
};

/* Opens the library (once more costs nothing) and prepares it. Main thread. */
enum status curl_api_open(struct curl_api *out, struct error *err) SY_MUST_CHECK;

#endif
