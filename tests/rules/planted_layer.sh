#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Adds a layer as nn/README.md says, and checks what the compiler says: nothing if it is complete; which part it lacks, each
# left out in turn; that our kernels have no plan for it.
#
# Usage: planted_layer.sh REPOSITORY COMPILER
set -euo pipefail
repository=$1 compiler=$2
planted=tests/rules/planted_layer.h layers=nn/layers/layer.h plans=nn/backend/kernels/kernel_plans
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{nn/layers,nn/backend/kernels,tests/rules}
cd "$repository"
failed=0
complain() { echo "$*" >&2; failed=1; }

# Compiles a source with the changed headers in $folder before the repository's.
compiles() { "$compiler" -std=c++20 -fsyntax-only -I "$folder" -I . "$1" &>"$folder/errors"; }

accepts() { compiles "$1" || complain "$1 does not compile with a complete layer:" "$(<"$folder/errors")"; }

# rejects SOURCE WHAT NAME: WHAT makes an error that has NAME.
rejects() {
  if compiles "$1"; then
    complain "$2 compiles"
  elif ! grep -qF "$3" "$folder/errors"; then
    complain "$2 does not compile, but the errors do not name $3:" "$(<"$folder/errors")"
  fi
}

cp $planted "$folder/$planted"
sed "s|^#include \"nn/layers/relu.h\"|&\n#include \"$planted\"|; /^using Layer =/,/>;/s|>;|, PlantedLayer>;|" \
  $layers >"$folder/$layers"
echo "#include \"$layers\"" >"$folder/layers.cpp"
accepts "$folder/layers.cpp"
rejects $plans.cpp "a layer without a plan" plan_of
sed 's|^\( *std::unique_ptr<Plan> plan_of(const \)Relu&.*|&\n\1PlantedLayer\& layer, std::span<const NodeSpec> nodes) const;|' \
  $plans.h >"$folder/$plans.h"
for source in $plans.cpp nn/models/model.cpp nn/program/program.cpp nn/backend/cpu/cpu_backend.cpp; do accepts "$source"; done

parts=$(sed -n 's/^ *{ \(\(L::\|layer\.\)[A-Za-z_]*\).*/\1/p' $layers)
(($(wc -w <<<"$parts") >= 9)) || complain "$layers lists too few parts: $parts"
for part in $parts; do
  grep -v " ${part##*[.:]}\( =\|(const Act\|(LayerKeys\|() const\)" $planted >"$folder/$planted"
  ! cmp -s "$folder/$planted" $planted || complain "$planted has no ${part##*[.:]}"
  rejects "$folder/layers.cpp" "a layer without $part" "$part"
done
exit $failed
