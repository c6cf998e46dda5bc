// SPDX-License-Identifier: Apache-2.0
#include "train/app/rank/run_banner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "kernels/base/printable.h"
#include "train/options/parse_value.h"
#include "train/options/shell_words.h"
#include "train/records/metrics/byte_text.h"
#include "train/records/metrics/loss_text.h"
#include "train/records/metrics/progress.h"
#include "train/view/page/number_text.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using page::count_text;

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count_text(count), what, count == 1 ? "" : "s");
}

std::string memory(std::size_t bytes) { return memory_text(static_cast<double>(bytes)); }

std::string data_text(const RunHeader& header) {
  const std::string validation =
      header.validation_samples ? count_text(*header.validation_samples) + " validation, " : std::string();
  return fmt::format("{}: {} training, {}{} test samples", header.dataset, count_text(header.train_samples), validation,
                     count_text(header.test_samples));
}

/// "Example CPU, by cpu in fp32", and how many of them one process drives.
std::string device_text(const RunHeader& header) {
  const std::string device = fmt::format("{}, by {} in {}", header.device, header.backend, header.precision);
  const auto option = std::ranges::find(header.config, "data-parallel", [](const auto& each) { return each.first; });
  const bool is_one = option == header.config.end() || option->second == "1";
  return is_one ? device : fmt::format("{}; {} devices (--data-parallel)", device, option->second);
}

std::string steps_text(const RunHeader& header) {
  const std::int64_t whole = header.total_steps / header.steps_per_epoch;
  const bool ends_within_epoch = header.total_steps % header.steps_per_epoch != 0;
  const std::string epochs = ends_within_epoch
                                 ? fmt::format("{:.1f} epochs", static_cast<double>(header.total_steps) /
                                                                    static_cast<double>(header.steps_per_epoch))
                                 : counted(whole, "epoch");
  return fmt::format("{} of {}: {} of {}", count_text(header.total_steps), counted(header.global_batch, "sample"),
                     epochs, counted(header.steps_per_epoch, "step"));
}

std::string score_text(double accuracy, double loss) {
  return fmt::format("{:.2f} %, loss {}", 100 * accuracy, loss_text(loss));
}

/// The checkpoint that --best names, and a better evaluation that is in none.
std::vector<BannerRow> best_rows(const RunFigures& figures, bool is_validated) {
  if (!figures.best_saved_accuracy) return {};
  const auto text = [&](std::optional<double> accuracy, std::int64_t step) {
    return fmt::format("{:.2f} %{} after step {}", 100 * accuracy.value_or(0), is_validated ? " in validation" : "",
                       count_text(step));
  };
  std::vector<BannerRow> rows = {{"Best saved", text(figures.best_saved_accuracy, figures.best_saved_step) +
                                                    fmt::format(": checkpoints/step-{}", figures.best_saved_step)}};
  if (figures.best_is_not_saved())
    rows.push_back({"Best seen", text(figures.selecting().best_accuracy, figures.selecting().best_step) +
                                     ": not saved, since checkpoints are scored at the ends of epochs"});
  return rows;
}

/// The text, wrapped; lines after the first begin with `indent` blanks. A word may be longer than a line.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string lines;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const bool fits = columns == 0 || column + 1 + word.size() <= columns;
    if (!lines.empty()) {
      lines += fits ? " " : "\n" + std::string(indent, ' ');
      column = fits ? column + 1 : indent;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

std::size_t label_width(const std::vector<BannerRow>& rows) {
  constexpr std::size_t kLeast = 13;  // equal in the blocks at the start and at the end
  std::size_t width = kLeast;
  for (const BannerRow& row : rows) width = std::max(width, row.label.size());
  return width;
}

/// The program as the person named it, who may have started a launcher of the same name.
std::string program_of(const StartedBy& started_by) {
  if (started_by.own.empty()) return "gradring";
  const auto name = [](const std::string& path) { return fs::path(path).filename(); };
  const bool is_launcher =
      !started_by.parent.empty() && name(started_by.parent.front()) == name(started_by.own.front());
  return is_launcher ? started_by.parent.front() : started_by.own.front();
}

/// The command that trains with more steps, without injected faults. A schedule that spans the training would raise the
/// learning rate again if the run were resumed with more steps, so a longer one begins anew.
std::string longer_command(const StartedBy& started_by, const TrainConfig& config, const TrainingEnd& end,
                           const fs::path& run_dir, std::vector<OptionWord> longer) {
  fs::path another = run_dir.has_filename() ? run_dir : run_dir.parent_path();
  if (!end.made_all_steps) longer.clear();
  for (const OptionWord& option : longer) another += fmt::format("-{}{}", *option.value, option.name.substr(1));
  longer.push_back({"--inject"});
  if (!end.made_all_steps || !spans_training(config.schedule)) {
    if (end.stops_early) longer.push_back({"--early-stop", "0"});
    return resume_command(started_by, run_dir, longer);
  }
  return restart_command(started_by, another, longer) +
         "  # a new run: the learning rate of this one has reached its end";
}

/// Where texts wrap: not in a file.
std::size_t width_of(const Console& out) {
  return is_terminal(out.fd()) ? terminal_size(out.fd()).value_or(TerminalSize()).columns : 0;
}

/// What its directory says of the run, if it can be read: the results are known without.
RunFigures figures_in(const fs::path& run_dir) try {
  return open_run(run_dir, wall_time(), skim_line).figures;
} catch (const Error&) {
  return {};
}

void print_rows(Console& out, const FinishedRun& run) {
  const TextLook look(out.fd());
  out.write(aligned(result_rows(run.summary, run.figures, run.run_dir), width_of(out), look) + "\n" +
            aligned(next_steps(run.started_by, run.config, run.end, run.shown_dir), 0, look));  // commands stay whole
}

}  // namespace

std::vector<BannerRow> start_rows(const RunHeader& header, const fs::path& run_dir, const fs::path& resumed_from) {
  std::vector<BannerRow> rows = {
      {"Model", fmt::format("{}, {}", header.model, counted(header.parameters, "parameter"))},
      {"Data", data_text(header)},
      {"Device", device_text(header)},
      {"Ranks", count_text(header.ranks)},
      {"Steps", steps_text(header)},
      {"Memory", memory(header.planned_memory.total()) + " planned on each rank"},
      {"Run directory", run_dir.string()}};
  if (!resumed_from.empty())
    rows.push_back(
        {"Resumed from", fmt::format("{}, after {}", resumed_from.string(), counted(header.resumed_from, "step"))});
  return rows;
}

std::vector<BannerRow> result_rows(const Summary& summary, const RunFigures& figures, const fs::path& run_dir) {
  constexpr std::size_t kHashDigits = 12;
  std::vector<BannerRow> rows = {{"Test accuracy", score_text(summary.accuracy, summary.loss)}};
  if (summary.top5_accuracy) rows.push_back({"Top-5", fmt::format("{:.2f} %", 100 * *summary.top5_accuracy)});
  if (summary.tta_accuracy) rows.push_back({"With --tta", fmt::format("{:.2f} %", 100 * *summary.tta_accuracy)});
  if (summary.validation_accuracy)
    rows.push_back({"Validation", score_text(*summary.validation_accuracy, summary.validation_loss.value_or(0))});
  std::ranges::move(best_rows(figures, summary.validation_accuracy.has_value()), std::back_inserter(rows));
  rows.push_back({"Training time", fmt::format("{:.1f} s, {:.0f} samples a second on {}", summary.seconds,
                                               summary.samples_per_second, counted(summary.world_size, "rank"))});
  rows.push_back({"Device memory", fmt::format("{} a rank at most, {} planned", memory(summary.peak_memory.total()),
                                               memory(summary.planned_memory.total()))});
  rows.push_back({"Weights", fmt::format("SHA-256 {}...{}", summary.parameters_sha256.substr(0, kHashDigits),
                                         summary.world_size > 1 ? ", equal on all ranks" : "")});
  rows.push_back({"Run directory", run_dir.string()});
  return rows;
}

std::vector<BannerRow> next_steps(const StartedBy& started_by, const TrainConfig& config, const TrainingEnd& end,
                                  const fs::path& run_dir) {
  const std::string program = program_of(started_by);
  const auto command = [&](std::vector<std::string> words) {
    words.insert(words.begin(), program);
    return shell_command(words);
  };
  const std::string run = run_dir.string();
  std::vector<OptionWord> longer;
  bool can_be_longer = true;  // the options accept it
  const auto add_twice = [&](const char* option, std::int64_t count) {
    if (count <= 0) return;
    can_be_longer = can_be_longer && count <= IntegerRange{}.most / 2;
    if (can_be_longer) longer.push_back({option, std::to_string(2 * count)});
  };
  add_twice("--epochs", config.epochs);
  add_twice("--steps", config.steps);
  std::vector<std::string> evaluate = {"eval", run};
  if (config.val_split) evaluate.emplace_back("--best");
  std::vector<BannerRow> rows = {{"evaluate", command(evaluate)}};
  if (can_be_longer || !end.made_all_steps)
    rows.push_back({"train longer", longer_command(started_by, config, end, run_dir, longer)});
  rows.push_back({"export", command({"export", run, "--output", "model.onnx"})});
  rows.push_back({"report", command({"report", run, "-o", "report.html"})});
  rows.push_back({"compare", command({"runs", "ls"})});
  return rows;
}

std::string longer_advice(const TrainConfig& config, const TrainingEnd& end) {
  if (!end.made_all_steps)
    return fmt::format(
        "--early-stop {} has ended it, since the validation accuracy had not risen for as many epochs; to train "
        "longer, "
        "resume with a larger --early-stop, or with 0",
        config.early_stop);
  if (!spans_training(config.schedule)) return "to train longer, raise --epochs or --steps";
  return fmt::format(
      "to train longer, start a new run with more --epochs or --steps: a resume with more would raise the learning "
      "rate, since the {} schedule spans the whole training",
      word_of(config.schedule.kind));
}

std::string aligned(const std::vector<BannerRow>& rows, std::size_t columns, const TextLook& look) {
  const std::size_t width = label_width(rows);
  std::string text;
  for (const BannerRow& row : rows)
    text += look.dim(fmt::format("{:<{}}", row.label, width)) + "  " +
            wrapped(printable(row.text), width + 2, columns) + "\n";
  return text;
}

FinishedRun finished_run(const Summary& summary, const TrainConfig& config, const TrainingEnd& end,
                         const StartedBy& started_by, const RunOutput& output) {
  return {.summary = summary,
          .config = config,
          .end = end,
          .figures = figures_in(output.current_path()),
          .started_by = started_by,
          .run_dir = output.current_path(),
          .shown_dir = output.shown_path()};
}

void print_start(Console& out, const RunHeader& header, const fs::path& run_dir, const fs::path& resumed_from) {
  out.write(aligned(start_rows(header, run_dir, resumed_from), width_of(out), TextLook(out.fd())) + "\n");
}

void print_result(Console& out, const FinishedRun& run) {
  out.write("\n");
  print_rows(out, run);
}

void print_finished(Console& out, const FinishedRun& run) {
  make_progress(run.config.progress, out)
      ->remark(fmt::format("the run is already finished ({} steps): nothing was trained; {}", run.summary.steps,
                           longer_advice(run.config, run.end)));
  if (run.config.progress == ProgressStyle::none) return;
  out.write("Results of the finished run:\n");
  print_rows(out, run);
}

}  // namespace gradring::train
