# SPDX-License-Identifier: Apache-2.0
# Writes the commit that is being built into a source, only if it has changed: cmake -DSOURCE=... -DOUTPUT=... -P this.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=8 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[// Written by scripts/cmake/write_commit.cmake.
#include "kernels/base/commit.h"

const char* const gradring::kCommit = "@commit@";
]])
