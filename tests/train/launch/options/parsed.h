// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/launch/options/parse_launch.h"

namespace gradring::train {

using Words = std::vector<std::string>;
using VariableTable = std::map<std::string, std::string>;

/// Six cores, `gpus` GPUs, this program is /bin/gradring, the random run id is "random", the free port 40000.
LaunchWorld world_with(const VariableTable& variables, int gpus = 0);

LaunchOptions parse(const Words& words, const VariableTable& variables = {}, int gpus = 0);

/// What is wrong with a command line; empty if it is right.
std::string fault_of(const Words& words, const VariableTable& variables = {});

}  // namespace gradring::train
