# cmake -DHOT=harness.py -DCOLD=harness_cold.py -DOUT=harness_text.c -P embed.cmake
#
# Writes the preamble ("<decimal length>\n<harness source>") as a C array. Comment lines
# and blank lines are dropped; the cold part becomes one string inside the hot one. Done
# by cmake alone, so that a build needs no further tool.

cmake_minimum_required(VERSION 3.25)

function(read_stripped path out)
    file(READ "${path}" text)
    string(REGEX REPLACE "\n[ \t]*#[^\n]*" "" text "\n${text}")
    string(REGEX REPLACE "\n[ \t]*\n+" "\n" text "${text}")
    string(REGEX REPLACE "\n\n+" "\n" text "${text}")
    string(REGEX REPLACE "^\n+" "" text "${text}")
    set(${out} "${text}" PARENT_SCOPE)
endfunction()

read_stripped("${HOT}" hot)
read_stripped("${COLD}" cold)
if(cold MATCHES "'''")
    message(FATAL_ERROR "${COLD}: ''' cannot stand in it")
endif()
string(REPLACE "\"@COLD@\"" "r'''${cold}'''" text "${hot}")
if(text STREQUAL hot)
    message(FATAL_ERROR "${HOT}: no place for the cold part")
endif()
string(LENGTH "${text}" length)
file(WRITE "${OUT}.txt" "${length}\n${text}")
file(SIZE "${OUT}.txt" size)
string(LENGTH "${length}\n" head)
math(EXPR want "${length} + ${head}")
if(NOT size EQUAL want)
    message(FATAL_ERROR "the harness must be ASCII")
endif()
file(READ "${OUT}.txt" hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
file(WRITE "${OUT}" "/* Made by embed.cmake from harness.py and harness_cold.py. */
#include \"exec/harness_text.h\"

const unsigned char harness_text[] = {
${hex}0x00
};
const size_t harness_text_len = sizeof harness_text - 1;
const size_t harness_text_head = ${head};
")
