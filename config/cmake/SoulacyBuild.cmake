# Language, flags and output layout. Each list of flags is an INTERFACE target, so that
# executables, plugins and the static helper take what fits them and nothing else.
#
#   soulacy_flags       warnings and hardening
#   soulacy_instrument  sanitizers, coverage; every object but the static helper's
#   soulacy_options     both: linked by modules, tests and our plugins
#   soulacy_core        include directories of the core, which no plugin gets
#   soulacy_exe         link flags of an executable
#
# Plugins take their link flags from plugin-api/cmake/SoulacyPlugin.cmake, as a third
# party does.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
check_pie_supported(LANGUAGES C)

# -g and the optimisation level are all a build type decides: asserts stay in releases.
set(CMAKE_C_FLAGS_DEBUG "-Og -g")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

# The build tree has the layout of an installed one, since the program finds its parts
# relative to itself: bin/soulacy, libexec/soulacy/soulacy-spawn, lib/soulacy/NAME.so.
set(SOULACY_BIN_DIR bin)
set(SOULACY_LIBEXEC_DIR libexec/soulacy)
set(SOULACY_PLUGIN_DIR lib/soulacy)
set(SOULACY_SHARE_DIR share/soulacy)

set(soulacy_sanitized OFF)
if(SOULACY_SANITIZE)
    set(soulacy_sanitized ON)
    if(CMAKE_C_COMPILER_ID MATCHES "Clang")
        # clang leaves the sanitizer's symbols to the host program.
        set(SOULACY_PLUGIN_Z_DEFS OFF)
    endif()
endif()

set(soulacy_warnings
    -Wall -Wextra -Wpedantic -Wformat=2 -Wconversion -Wsign-conversion -Wshadow -Wundef
    -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wwrite-strings
    -Wcast-qual -Wcast-align -Wpointer-arith -Wimplicit-fallthrough -Wvla
    -Wnull-dereference -Wswitch-enum -Wdate-time -Walloca)
set(soulacy_warnings_gcc
    -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wjump-misses-init -Wtrampolines
    -Warith-conversion)
if(soulacy_sanitized OR SOULACY_COVERAGE)
    # Instrumented code draws this one falsely: it follows paths the checks invent.
    list(REMOVE_ITEM soulacy_warnings -Wnull-dereference)
endif()

set(soulacy_hardening
    -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
    -fno-delete-null-pointer-checks -fno-strict-aliasing -fno-common)
set(soulacy_hardening_gcc -ftrivial-auto-var-init=zero)
if(NOT soulacy_sanitized AND NOT SOULACY_COVERAGE)
    # Sanitizers have their own checks in the same functions; coverage is built at -O0.
    set(soulacy_fortify -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
else()
    set(soulacy_fortify -U_FORTIFY_SOURCE)
endif()

# Puts into `out` those of the given flags that this compiler takes.
function(soulacy_supported_flags out)
    set(kept "")
    foreach(flag IN LISTS ARGN)
        string(MAKE_C_IDENTIFIER "SOULACY_HAS${flag}" var)
        # A warning about an unknown option must count as a refusal (clang).
        set(CMAKE_REQUIRED_FLAGS "-Werror")
        set(CMAKE_REQUIRED_QUIET ON)
        check_c_compiler_flag("${flag}" ${var})
        if(${var})
            list(APPEND kept "${flag}")
        endif()
    endforeach()
    set(${out} "${kept}" PARENT_SCOPE)
endfunction()

set(soulacy_all_flags ${soulacy_warnings} ${soulacy_hardening})
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND soulacy_all_flags ${soulacy_warnings_gcc} ${soulacy_hardening_gcc})
endif()
soulacy_supported_flags(soulacy_compile_flags ${soulacy_all_flags})
if(SOULACY_WERROR)
    list(APPEND soulacy_compile_flags -Werror)
endif()

# What instruments the code. The helper stays out: it is static and forks without exec.
add_library(soulacy_instrument INTERFACE)
if(soulacy_sanitized)
    # libFuzzer's main belongs to fuzz targets alone, so objects get fuzzer-no-link.
    string(REPLACE "fuzzer" "fuzzer-no-link" soulacy_san_objects "${SOULACY_SANITIZE}")
    target_compile_options(soulacy_instrument INTERFACE
        "-fsanitize=${soulacy_san_objects}" -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    target_link_options(soulacy_instrument INTERFACE "-fsanitize=${soulacy_san_objects}")
endif()
if(SOULACY_COVERAGE)
    target_compile_options(soulacy_instrument INTERFACE --coverage -fprofile-update=atomic)
    target_link_options(soulacy_instrument INTERFACE --coverage)
endif()

add_library(soulacy_flags INTERFACE)
target_compile_definitions(soulacy_flags INTERFACE _POSIX_C_SOURCE=200809L)
target_compile_options(soulacy_flags INTERFACE ${soulacy_compile_flags} ${soulacy_fortify})
if(SOULACY_COVERAGE)
    # Branches as they are written.
    target_compile_options(soulacy_flags INTERFACE -O0)
endif()

add_library(soulacy_options INTERFACE)
target_link_libraries(soulacy_options INTERFACE soulacy_flags soulacy_instrument)

add_library(soulacy_core INTERFACE)
target_include_directories(soulacy_core INTERFACE
    "${PROJECT_SOURCE_DIR}/core"
    "${PROJECT_SOURCE_DIR}/include"
    "${PROJECT_BINARY_DIR}/generated")

# No nodlopen here or anywhere: it must never reach a plugin.
add_library(soulacy_exe INTERFACE)
target_link_options(soulacy_exe INTERFACE
    LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack LINKER:--as-needed)

configure_file("${PROJECT_SOURCE_DIR}/core/base/version.h.in"
    "${PROJECT_BINARY_DIR}/generated/base/version.h" @ONLY)
