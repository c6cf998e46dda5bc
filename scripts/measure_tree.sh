#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the size of a checkout and how well it keeps to the rules that have a number.
#
# Usage: scripts/measure_tree.sh [FOLDER [cycles] [upward] [words] [widths] [paths] [headers]]
#
# FOLDER is the root of a checkout of any commit (default: this one). The words after it list what was counted. Counts
# production code (kernels, nn, comm, data, train) and tests apart; a line of code has more than comments and blanks.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [[ ${1-} == -h || ${1-} == --help ]]; then usage; exit; fi
program=build/measure_tree
mkdir -p build
if [[ ! -x $program || -n $(find tests/rules -newer $program -name '*.*' -print -quit) ]]; then
  "${CXX:-g++}" -std=c++20 -O1 -I. tests/rules/{measure_tree,source_tree,include_rules,folder_graph,text_rules,layout_rules,document_rules,pattern}.cpp \
    -o $program
fi
if (($# == 0)); then set -- .; fi
exec $program "$@"
