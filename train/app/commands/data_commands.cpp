// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/datasets/open_dataset.h"
#include "data/fetch/catalogue.h"
#include "data/fetch/fetch.h"
#include "data/files/byte_source.h"
#include "kernels/base/file.h"
#include "kernels/base/printable.h"
#include "train/app/commands/commands.h"
#include "train/core/config/options.h"
#include "train/options/environment_variable.h"
#include "train/options/parse_value.h"
#include "train/options/path_value.h"
#include "train/options/print_text.h"
#include "train/options/shell_words.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/byte_text.h"
#include "train/records/metrics/console.h"
#include "train/records/metrics/terminal_look.h"

namespace gradring::train {
namespace {

std::string size_text(std::uint64_t bytes) { return file_size_text(static_cast<double>(bytes)); }

/// --data-dir, the parent of the datasets' folders.
Option data_dir_option(std::string& data_dir) {
  data_dir = expand_home("GRADRING_DATA_DIR", system_variable("GRADRING_DATA_DIR").value_or("datasets"));
  return text_option("data-dir", "DIR", "parent of the datasets' folders (default " + data_dir + ")", data_dir);
}

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRedraw{100};
constexpr const char* kClearLine = "\r\033[K";

/// Progress of a fetch: a line for each file and each failed address; on a terminal also a line that is redrawn.
class FetchProgress final : public data::FetchListener {
 public:
  explicit FetchProgress(Console& out) : out_(out), terminal_(is_terminal(out.fd())) {}

  void already_there(std::string_view file) override { say(fmt::format("{} already exists", file)); }

  void asking(std::string_view file, std::string_view url, std::uint64_t begin) override {
    file_ = file;
    begin_ = begin;
    asked_at_ = Clock::now();
    say(fmt::format("{}{}", url, begin > 0 ? " from " + size_text(begin) + " on" : ""));
  }

  void arrived(std::uint64_t bytes, std::uint64_t of_bytes) override {
    const auto now = Clock::now();
    if (!terminal_ || (now - drawn_at_ < kRedraw && bytes < of_bytes)) return;
    drawn_at_ = now;
    const double seconds = std::chrono::duration<double>(now - asked_at_).count();
    const double rate = seconds > 0 && bytes > begin_ ? static_cast<double>(bytes - begin_) / seconds : 0;
    out_.write(fmt::format("{}{} {:3.0f} % of {}, {}/s", kClearLine, file_,
                           100.0 * static_cast<double>(bytes) / static_cast<double>(of_bytes), size_text(of_bytes),
                           file_size_text(rate)));
    line_open_ = true;
  }

  void failed(std::string_view, std::string_view why) override { say(fmt::format("  failed: {}", why)); }
  void done(std::string_view file) override { say(fmt::format("{} is whole and right", file)); }

 private:
  void say(const std::string& text) {
    out_.write(fmt::format("{}{}\n", line_open_ ? kClearLine : "", printable(text)));
    line_open_ = false;
  }

  Console& out_;
  const bool terminal_;
  std::string file_;
  std::uint64_t begin_ = 0;
  Clock::time_point asked_at_;
  Clock::time_point drawn_at_;
  bool line_open_ = false;
};

constexpr const char* kDataSetNotes =
    "Files go to DIR/NAME. Valid files are kept, and an interrupted transfer is resumed (FILE.part). Size and SHA-256 "
    "of every file are checked before it gets its name, and a wrong file is removed: mirrors need not be trusted.\n\n"
    "Exit codes: 0 success, 2 usage error, 3 network or disk, 4 wrong content.";

struct FetchOptions {
  std::string data_dir;
  std::vector<std::string> mirrors;
};

CommandLine command_line(FetchOptions& options) {
  CommandLine line{.command = "gradring data fetch",
                   .purpose = "download of a dataset: mnist, fashion-mnist, cifar10 or cifar100",
                   .usage = {"gradring data fetch NAME [OPTIONS]"},
                   .options = {data_dir_option(options.data_dir)},
                   .takes_words = true,
                   .notes = kDataSetNotes};
  line.options.push_back({.name = "mirror",
                          .value = "URL",
                          .help = "address of a folder with the files, instead of the public mirrors; may be repeated",
                          .read = [&options](std::string_view text) {
                            if (!text.starts_with("https://") && !text.starts_with("http://"))
                              throw bad_value("mirror", text, "must begin with https:// or http://");
                            options.mirrors.emplace_back(text);
                          }});
  return line;
}

void run(const FetchOptions& options, const Words& words) {
  const data::CatalogueEntry& entry = data::find_entry(only_word(words, "gradring data fetch NAME"));
  Console out;
  out.on_failure([](const std::string& message) {
    print_to_stderr(fmt::format("gradring data fetch: {}; the download continues\n", message));
  });
  FetchProgress progress(out);
  data::fetch(entry, {.data_dir = options.data_dir, .mirrors = options.mirrors}, progress);
  out.write(printable(fmt::format("{0} is in {1}. Try: gradring train --dataset {0} --data-dir {2}\n", entry.name,
                                  options.data_dir, shell_quoted(options.data_dir)),
                      "\n"));
  out.finish();
}

struct VerifyDataOptions {
  std::string data_dir;
};

CommandLine command_line(VerifyDataOptions& options) {
  return {.command = "gradring data verify",
          .purpose = "check of the files of a dataset against their SHA-256",
          .usage = {"gradring data verify NAME [OPTIONS]"},
          .options = {data_dir_option(options.data_dir)},
          .takes_words = true};
}

void run(const VerifyDataOptions& options, const Words& words) {
  const data::CatalogueEntry& entry = data::find_entry(only_word(words, "gradring data verify NAME"));
  std::size_t faults = 0;
  for (const data::VerifiedFile& file : data::verify(entry, options.data_dir)) {
    const bool good = file.check.state == data::FileState::good;
    print_text("{:<4} {}{}\n", good ? "ok" : "BAD", file.path.string(), good ? "" : ": " + file.check.found);
    faults += !good;
  }
  if (faults > 0)
    throw data::DataError(
        options.data_dir,
        fmt::format("{} of {} files of {} are missing or wrong", faults, entry.files.size(), entry.name),
        fmt::format("get them: gradring data fetch {} --data-dir {}", entry.name, options.data_dir));
}

struct InfoOptions {
  TrainConfig data;  ///< its options of a data set
};

CommandLine command_line(InfoOptions& options) {
  options.data.dataset.clear();
  std::vector<Option> all = dataset_options(options.data);
  all[0].help = "dataset, as NAME (default none)";
  all[1] = data_dir_option(options.data.data_dir);
  return {.command = "gradring data info",
          .purpose = "datasets that can be fetched, or statistics of one",
          .usage = {"gradring data info", "gradring data info NAME [OPTIONS]"},
          .options = std::move(all),
          .takes_words = true};
}

std::uint64_t bytes_to_fetch(const data::CatalogueEntry& entry) {
  std::uint64_t bytes = entry.archive.bytes;
  if (bytes == 0)
    for (const data::CatalogueFile& file : entry.files) bytes += file.file.bytes;
  return bytes;
}

void print_catalogue() {
  for (const data::CatalogueEntry& entry : data::catalogue())
    print_text("{}\n  {}\n  by {}\n  {} to fetch: gradring data fetch {}\n  from {}\n\n", entry.name, entry.title,
               entry.authors, size_text(bytes_to_fetch(entry)), entry.name, fmt::join(entry.mirrors, "\n       "));
  print_text("digits\n  digits generated in memory: nothing to fetch\n");
}

void print_split(const data::Dataset& dataset, data::Split split) {
  const data::DatasetStatistics found = data::statistics_of(dataset);
  print_text("{:<6} {} samples of {}, {} classes of {} to {} samples each\n", name_of(split), dataset.size(),
             dataset.shape().to_string(), dataset.classes(), std::ranges::min(found.samples_of_class),
             std::ranges::max(found.samples_of_class));
  print_text("       mean {:.4f}, standard deviation {:.4f} by channel, of pixels from 0 to 1\n",
             fmt::join(found.mean, " "), fmt::join(found.std, " "));
  constexpr int kMostShown = 30;
  if (dataset.classes() > kMostShown) return;
  std::vector<std::string> classes;
  for (std::size_t i = 0; i < found.samples_of_class.size(); ++i)
    classes.push_back(fmt::format("{} {}", dataset.class_names()[i], found.samples_of_class[i]));
  print_text("       {}\n", fmt::join(classes, ", "));
}

void run(InfoOptions& options, const Words& words) {
  if (!words.empty()) options.data.dataset = only_word(words, "gradring data info NAME");
  if (options.data.dataset.empty()) {
    print_catalogue();
    return;
  }
  check_image_options(options.data);
  const data::DatasetSpec spec = dataset_spec(options.data);
  print_split(*data::open_dataset(spec, data::Split::train), data::Split::train);
  if (data::has_test_set(spec)) print_split(*data::open_dataset(spec, data::Split::test), data::Split::test);
}

}  // namespace

const Command kDataFetch = make_command<FetchOptions>("fetch", "download of a dataset, resumed and checked");
const Command kDataVerify = make_command<VerifyDataOptions>("verify", "check of the files of a dataset");
const Command kDataInfo = make_command<InfoOptions>("info", "available datasets, or statistics of one");

}  // namespace gradring::train
