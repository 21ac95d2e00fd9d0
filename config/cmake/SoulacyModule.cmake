# soulacy_module(NAME SOURCES file... [DEPS module...] [LIBS target...] [NO_BANNED])
#   One folder of core/ as the static library core_NAME. A DEPS on a higher layer stops
#   the configuration. NO_BANNED is for the module that wraps the banned functions.
#
# soulacy_helper_program(NAME SOURCES file... [LIBS target...])
#   A static program in libexec/soulacy.

# Lower layers first. Modules of one line may use each other.
set(SOULACY_LAYERS
    "base"
    "config,store,audit,metrics"
    "plugin"
    "gate,sandbox,exec,net,model,mcp,tools,intake,reply,agent,server"
    "runtime"
    "cli")

# Puts the number of the module's layer into `out`; an unknown module is an error.
function(soulacy_layer_of module out)
    set(number 0)
    foreach(line IN LISTS SOULACY_LAYERS)
        string(REPLACE "," ";" names "${line}")
        if(module IN_LIST names)
            set(${out} ${number} PARENT_SCOPE)
            return()
        endif()
        math(EXPR number "${number} + 1")
    endforeach()
    message(FATAL_ERROR
        "core module '${module}' has no layer: add it to config/cmake/SoulacyModule.cmake")
endfunction()

# Every module of every layer, lowest first.
function(soulacy_all_modules out)
    string(REPLACE "," ";" names "${SOULACY_LAYERS}")
    set(${out} "${names}" PARENT_SCOPE)
endfunction()

# Puts the sources that exist into `out`. The presets, which are strict, take the list as
# it is and stop at a file that is not there; a plain configuration leaves it out, so that
# half a tree builds.
function(soulacy_present_sources out)
    set(present "")
    foreach(source IN LISTS ARGN)
        get_source_file_property(generated "${source}" GENERATED)
        cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
        cmake_path(IS_PREFIX PROJECT_BINARY_DIR "${path}" in_build)
        if(SOULACY_WERROR OR generated OR in_build OR EXISTS "${path}"
                OR source MATCHES "^[$]<")
            list(APPEND present "${source}")
        else()
            message(WARNING "${path} is not there: left out, run cmake again when it is")
        endif()
    endforeach()
    set(${out} "${present}" PARENT_SCOPE)
endfunction()

# Names of raw functions do not compile in what calls this.
function(soulacy_ban_functions target)
    set(header "${PROJECT_SOURCE_DIR}/core/base/banned.h")
    if(EXISTS "${header}")
        target_compile_options(${target} PRIVATE -include "${header}")
    endif()
endfunction()

function(soulacy_module name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "NO_BANNED" "" "SOURCES;DEPS;LIBS")
    if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR
            "soulacy_module(${name}): no SOURCES, or stray '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    soulacy_layer_of(${name} own)
    set(deps "")
    foreach(dep IN LISTS arg_DEPS)
        soulacy_layer_of(${dep} layer)
        if(layer GREATER own)
            message(FATAL_ERROR "core/${name} may not depend on core/${dep}: higher layer")
        endif()
        list(APPEND deps "core_${dep}")
    endforeach()
    soulacy_present_sources(sources ${arg_SOURCES})
    if(NOT sources)
        return()
    endif()
    add_library(core_${name} STATIC ${sources})
    target_link_libraries(core_${name} PUBLIC ${deps} ${arg_LIBS} soulacy_core soulacy_options)
    if(NOT arg_NO_BANNED)
        soulacy_ban_functions(core_${name})
    endif()
endfunction()

function(soulacy_helper_program name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
    soulacy_present_sources(sources ${arg_SOURCES})
    if(NOT sources)
        return()
    endif()
    add_executable(${name} ${sources})
    target_link_libraries(${name} PRIVATE
        ${arg_LIBS} soulacy_core soulacy_flags soulacy_exe)
    # static-pie is neither of the two kinds CMake knows, so its own flags are unset.
    set_property(TARGET ${name} PROPERTY POSITION_INDEPENDENT_CODE)
    target_compile_options(${name} PRIVATE -fPIE)
    target_link_options(${name} PRIVATE -static-pie)
    soulacy_ban_functions(${name})
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${SOULACY_LIBEXEC_DIR}")
    install(TARGETS ${name} RUNTIME DESTINATION ${SOULACY_LIBEXEC_DIR} COMPONENT program)
endfunction()
