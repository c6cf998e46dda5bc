// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "train/app/commands/commands.h"
#include "train/core/setup/named_output.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/named_file.h"
#include "train/view/html_report/run_report.h"
#include "train/view/page/generator.h"
#include "train/view/runs/run.h"

namespace gradring::train {
namespace {

struct ReportOptions {
  std::string output = "report.html";
  std::string data_dir;
  bool no_pictures = false;
  Replace replace = Replace::ours;
};

CommandLine command_line(ReportOptions& options) {
  return {.command = "gradring report",
          .purpose = "HTML page of one run, or of several to compare",
          .usage = {"gradring report RUN [RUN...] [-o report.html]"},
          .options = {text_option("output,o", "FILE", "HTML file to write (default report.html)", options.output),
                      text_option("data-dir", "DIR",
                                  "folder with the files of the dataset, for the pictures "
                                  "(default as in the training; for public datasets GRADRING_DATA_DIR, if set)",
                                  options.data_dir),
                      switch_option("no-pictures",
                                    "no evaluation of the checkpoint: a page without confusion matrix, misclassified "
                                    "samples and filters",
                                    options.no_pictures),
                      force_option(options.replace)},
          .takes_words = true,
          .notes = "RUN is a run directory; the run may be in progress. The page is one file without scripts."};
}

/// Errors of checkpoint and dataset become a reason: they do not keep the rest from being shown.
std::variant<NoPictures, ModelPictures> pictures_of(const Run& run, const ReportOptions& options) {
  if (options.no_pictures) return NoPictures{"Not evaluated (--no-pictures)."};
  try {
    return make_pictures(run.path, options.data_dir);
  } catch (const Error& error) {
    return NoPictures{fmt::format("The model could not be evaluated: {}.", error.what())};
  }
}

void run(ReportOptions& options, const Words& words) {
  if (words.empty()) throw UsageError("name at least one run: gradring report RUN -o report.html");
  check_output({.option = "--output", .path = options.output, .is_ours = page::is_page}, options.replace);
  std::vector<ReportedRun> reported;
  for (const std::string& word : words) {
    Run run = open_run(word);
    for (const std::string& warning : run.history.warnings) print_to_stderr("gradring report: " + warning + "\n");
    std::string command = start_command(run.header());
    auto pictures = pictures_of(run, options);
    reported.push_back({.run = std::move(run), .pictures = std::move(pictures), .command = std::move(command)});
  }
  write_named_file(options.output, html_report(reported));
  print_text("{}\n", options.output);
}

}  // namespace

const Command kReportCommand = make_command<ReportOptions>("report", "HTML page of one run, or of several to compare");

}  // namespace gradring::train
