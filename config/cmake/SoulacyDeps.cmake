# The libraries, all by pkg-config. apt names are in tests/packages.txt.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(SSH REQUIRED IMPORTED_TARGET libssh)
pkg_check_modules(LWS REQUIRED IMPORTED_TARGET libwebsockets)
pkg_check_modules(SSL REQUIRED IMPORTED_TARGET libssl)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)

# libcurl costs four megabytes resident, so the core opens it when it is first needed and
# takes only the headers here.
add_library(soulacy_curl_headers INTERFACE)
target_include_directories(soulacy_curl_headers SYSTEM INTERFACE ${CURL_INCLUDE_DIRS})
target_link_libraries(soulacy_curl_headers INTERFACE ${CMAKE_DL_LIBS})

if(SOULACY_TESTS)
    pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
    if(NOT CMOCKA_FOUND)
        message(FATAL_ERROR
            "The tests need cmocka (apt install libcmocka-dev), or -DSOULACY_TESTS=OFF.")
    endif()
endif()
