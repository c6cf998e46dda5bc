# SPDX-License-Identifier: Apache-2.0

# gradring_header_version(out header names...): "9.19.0" from the lines `#define <name> <number>` of a header, in that order.
function(gradring_header_version out header)
  set(numbers "")
  foreach(name IN LISTS ARGN)
    file(STRINGS ${header} line REGEX "^#define +${name} +[0-9]+" LIMIT_COUNT 1)
    string(REGEX REPLACE "^#define +${name} +([0-9]+).*" "\\1" number "${line}")
    list(APPEND numbers ${number})
  endforeach()
  list(JOIN numbers . version)
  set(${out} ${version} PARENT_SCOPE)
endfunction()
