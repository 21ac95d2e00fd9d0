# soulacy_unit_test(NAME SOURCES file... [MODULES module...] [LIBS target...])
#   The cmocka program test_NAME in ctest as unit.NAME, label unit. One whose subject does
#   not exist under valgrind or the thread sanitizer says so:
#   set_property(TEST unit.NAME APPEND PROPERTY LABELS no-valgrind no-tsan)
#
# soulacy_fuzz_target(NAME SOURCES file... [MODULES module...] [LIBS target...] CORPUS dir)
#   SOURCES define LLVMFuzzerTestOneInput. With the fuzz preset this makes the libFuzzer
#   program fuzz_NAME; everywhere else corpus_NAME, which replays the corpus and one-byte
#   mutations of it as a unit test.
#
# soulacy_script_test(NAME LABEL label COMMAND word... [TIMEOUT seconds])
#   A script in ctest. Exit status 77 is a skip.

set(SOULACY_TEST_ENVIRONMENT
    "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1"
    "SOULACY_BUILD_DIR=${PROJECT_BINARY_DIR}"
    "SOULACY_SOURCE_DIR=${PROJECT_SOURCE_DIR}")

# Not a target yet when a test is read first, hence by expression: modules that come later.
function(soulacy_link_test target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "MODULES;LIBS")
    set(modules "")
    foreach(module IN LISTS arg_MODULES)
        list(APPEND modules "core_${module}")
    endforeach()
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_link_libraries(${target} PRIVATE
        ${modules} ${arg_LIBS} $<TARGET_NAME_IF_EXISTS:test_support>
        Threads::Threads soulacy_core soulacy_options soulacy_exe)
    set_target_properties(${target} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
endfunction()

function(soulacy_unit_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;MODULES;LIBS")
    if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR
            "soulacy_unit_test(${name}): no SOURCES, or stray '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    soulacy_present_sources(sources ${arg_SOURCES})
    if(NOT sources STREQUAL arg_SOURCES)
        return()
    endif()
    add_executable(test_${name} ${sources})
    soulacy_link_test(test_${name} MODULES ${arg_MODULES}
        LIBS ${arg_LIBS} PkgConfig::CMOCKA)
    add_test(NAME unit.${name} COMMAND test_${name})
    set_tests_properties(unit.${name} PROPERTIES
        LABELS unit TIMEOUT 60 SKIP_RETURN_CODE 77
        ENVIRONMENT "${SOULACY_TEST_ENVIRONMENT}")
endfunction()

function(soulacy_fuzz_target name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "CORPUS" "SOURCES;MODULES;LIBS")
    if(NOT arg_SOURCES OR NOT arg_CORPUS OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "soulacy_fuzz_target(${name}): SOURCES and CORPUS are needed")
    endif()
    soulacy_present_sources(sources ${arg_SOURCES})
    if(NOT sources STREQUAL arg_SOURCES)
        return()
    endif()
    cmake_path(ABSOLUTE_PATH arg_CORPUS NORMALIZE OUTPUT_VARIABLE corpus)
    if(SOULACY_SANITIZE MATCHES "fuzzer")
        add_executable(fuzz_${name} ${arg_SOURCES})
        soulacy_link_test(fuzz_${name} MODULES ${arg_MODULES} LIBS ${arg_LIBS})
        target_link_options(fuzz_${name} PRIVATE "-fsanitize=${SOULACY_SANITIZE}")
        set_property(GLOBAL APPEND_STRING PROPERTY SOULACY_FUZZ_TARGETS
            "${name}|tests/fuzz_${name}|${corpus}\n")
        return()
    endif()
    add_executable(corpus_${name}
        ${arg_SOURCES} "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.c")
    soulacy_link_test(corpus_${name} MODULES ${arg_MODULES} LIBS ${arg_LIBS})
    add_test(NAME corpus.${name} COMMAND corpus_${name} "${corpus}")
    set_tests_properties(corpus.${name} PROPERTIES
        LABELS unit TIMEOUT 120 ENVIRONMENT "${SOULACY_TEST_ENVIRONMENT}")
endfunction()

function(soulacy_script_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;TIMEOUT" "COMMAND")
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 300)
    endif()
    add_test(NAME ${name} COMMAND ${arg_COMMAND})
    set_tests_properties(${name} PROPERTIES
        LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
        ENVIRONMENT "${SOULACY_TEST_ENVIRONMENT}")
endfunction()
