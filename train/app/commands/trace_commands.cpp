// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <vector>

#include "train/app/commands/commands.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/trace/trace_file.h"
#include "train/records/trace/trace_summary.h"

namespace gradring::train {
namespace {

struct TraceSummaryOptions {
  bool json = false;
};

CommandLine command_line(TraceSummaryOptions& options) {
  return {.command = "gradring trace summary",
          .purpose = "compute, communication, critical path and straggler of each step of a trace",
          .usage = {"gradring trace summary FILE..."},
          .options = {json_switch(options.json)},
          .takes_words = true,
          .notes =
              "FILE was written by gradring train --trace. A run that failed leaves a file for each remaining rank: "
              "FILE.json, FILE.rank1.json, ...; name them all.\n\n"
              "Columns, in milliseconds, means over the ranks:\n"
              "  compute    forward, backward and optimizer\n"
              "  comm.      collectives, with the wait for late ranks\n"
              "  exposed    the trainer waits for collectives\n"
              "  overlap    share of comm. that is not exposed\n"
              "  straggler  the rank that came last to the collectives, and how much later than the others' median\n"
              "  critical   the chain of work over all ranks that determined the step's time, by category\n"};
}

void run(const TraceSummaryOptions& options, const Words& words) {
  if (words.empty()) throw UsageError("no trace to summarize: use gradring trace summary FILE...");
  const std::vector<std::filesystem::path> paths(words.begin(), words.end());
  const TraceSummary summary = summarize(read_trace(paths), words.front());
  print_text("{}{}", options.json ? to_json(summary) : to_text(summary), options.json ? "\n" : "");
}

}  // namespace

const Command kTraceSummary = make_command<TraceSummaryOptions>("summary", "figures of each step, and the straggler");

}  // namespace gradring::train
