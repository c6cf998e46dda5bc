// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "train/app/commands/commands.h"
#include "train/options/exit_code.h"
#include "train/options/parse_value.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/terminal_look.h"
#include "train/view/runs/live_frame.h"
#include "train/view/runs/live_run.h"
#include "train/view/runs/screen.h"

namespace gradring::train {
namespace {

struct TopOptions {
  std::chrono::milliseconds interval{1000};
  bool once = false;
};

std::chrono::milliseconds parse_interval(std::string_view option, std::string_view text) {
  const auto interval = parse_duration(option, text);
  if (interval < std::chrono::milliseconds(100)) throw bad_value(option, text, "must be at least 100ms");
  return interval;
}

CommandLine command_line(TopOptions& options) {
  return {.command = "gradring top",
          .purpose = "live view of a run: progress, loss, a row for each rank",
          .usage = {"gradring top RUN"},
          .options = {value_option("interval,d", "TIME",
                                   "time between two reads of the run's files, at least 100ms (default 1s)",
                                   parse_interval, options.interval),
                      switch_option("once", "a single view on standard output, not updated", options.once)},
          .takes_words = true,
          .notes =
              "RUN is a run directory, or the name of one in runs. Only its files are read, so it may be on a disk "
              "that another machine shares. q and Ctrl-C end the view, and so does the end of the run. Where "
              "standard output is no terminal, a line is written whenever the run has made progress. Columns: data "
              "and comm: share of a step in which the rank waits for the loader and for other ranks; memory: peak "
              "of the device. docs/runs.md says how states are decided."};
}

/// Until the run or its viewer ends it.
///
/// Returns   whether the run has ended.
bool watch_on_screen(LiveRun& live, const TopOptions& options) {
  Screen screen(STDIN_FILENO, STDOUT_FILENO, is_styled(STDOUT_FILENO));
  for (Screen::Wake wake = Screen::Wake::time; wake != Screen::Wake::quit; wake = screen.wait(options.interval)) {
    const double now = wall_time();
    live.poll(now);
    if (live.run().state != RunState::running) return true;
    screen.draw(frame_of(live, now, terminal_size(STDOUT_FILENO).value_or(TerminalSize()), glyphs_of_locale()));
  }
  return false;
}

void watch_in_lines(LiveRun& live, const TopOptions& options) {
  std::string last;
  for (;;) {
    const double now = wall_time();
    live.poll(now);
    const std::string line = line_of(live, now);
    const std::string untimed = line.substr(std::min(line.size(), line.find("  ")));
    if (untimed != last) print_text("{}\n", line);
    flush_standard_output();
    last = untimed;
    if (live.run().state != RunState::running) return;
    std::this_thread::sleep_for(options.interval);
  }
}

int run(const TopOptions& options, const Words& words) {
  LiveRun live(only_word(words, "gradring top RUN"));
  const auto size = terminal_size(STDOUT_FILENO);
  live.poll(wall_time());
  const bool is_screen = is_terminal(STDOUT_FILENO);
  if (!options.once && !is_screen) {
    watch_in_lines(live, options);
    return kOk;
  }
  if (!options.once && live.run().state == RunState::running)
    if (!watch_on_screen(live, options)) return kOk;
  const TerminalSize paper{.rows = 1000, .columns = size ? size->columns : 100};
  for (const FrameLine& line : frame_of(live, wall_time(), paper, glyphs_of_locale())) print_text("{}\n", line.text);
  return kOk;
}

}  // namespace

const Command kTopCommand = make_command<TopOptions>("top", "live view of a run: progress, loss, ranks");

}  // namespace gradring::train
