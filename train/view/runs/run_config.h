// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/view/runs/run.h"

namespace gradring::train {

/// A TOML literal as a person writes it: "cpu" without its quotes.
std::string unquoted(std::string literal);

/// Options of `gradring train` and their values, as the newest start of the run had them: from its header, otherwise
/// from its newest config.resolved.toml. Texts are without TOML's quotes. Empty if neither can be read.
std::vector<std::pair<std::string, std::string>> config_of(const Run& run);

/// A setting whose value is not the same in all of several runs.
struct ConfigDifference {
  std::string name;                 ///< "batch-size"; also "ranks", "commit", "machine"
  std::vector<std::string> values;  ///< of each run, of one that was resumed with another "8 -> 16"; empty: not known
};

/// The settings in which runs differ: first ranks, commit and machine, then options in the order of
/// `gradring train --help`. Leaves out options that say how a run is named, kept and shown: name, tags, run-dir,
/// resume, progress, nprocs.
std::vector<ConfigDifference> config_differences(std::span<const Run> runs);

}  // namespace gradring::train
