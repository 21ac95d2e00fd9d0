# soulacy_add_plugin(NAME SOURCES file... [LIBS target...])
#
# Builds NAME.so, a plugin for the soulacy gateway: hidden visibility, one exported symbol
# (soulacy_plugin_v1), no undefined symbol, never unmapped, and an install rule for
# lib/soulacy. The gateway's own plugins are built by this same function.
#
# Set SOULACY_PLUGIN_Z_DEFS to OFF before the call when building with clang and a
# sanitizer, whose runtime is defined by the host program.

function(soulacy_add_plugin name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
    if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR
            "soulacy_add_plugin(${name}): no SOURCES, or stray '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    # A variable set beside this function is out of scope for callers elsewhere, hence
    # the function's own directory.
    set(map "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/soulacy-plugin.map")

    add_library(${name} MODULE ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE soulacy::plugin-api ${arg_LIBS})
    set_target_properties(${name} PROPERTIES
        PREFIX ""
        C_VISIBILITY_PRESET hidden
        CXX_VISIBILITY_PRESET hidden
        VISIBILITY_INLINES_HIDDEN ON
        LINK_DEPENDS "${map}"
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/soulacy")
    target_link_options(${name} PRIVATE
        "LINKER:--version-script=${map}"
        LINKER:-z,relro LINKER:-z,now LINKER:-z,nodelete LINKER:-z,noexecstack
        LINKER:--as-needed)
    if(NOT DEFINED SOULACY_PLUGIN_Z_DEFS OR SOULACY_PLUGIN_Z_DEFS)
        target_link_options(${name} PRIVATE LINKER:-z,defs)
    endif()
    install(TARGETS ${name} LIBRARY DESTINATION lib/soulacy)
endfunction()
