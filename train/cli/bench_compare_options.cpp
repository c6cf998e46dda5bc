// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_compare_options.h"

#include <iterator>

#include "train/cli/bench_options.h"

namespace gradring::train {
namespace {

constexpr std::string_view kFormats[] = {"auto", "contiguous", "channels_last"};

constexpr const char* kHead =
    "gradring bench compare: the same training by gradring and by PyTorch, in turns: the seed model, Adam 1e-3, "
    "FP32,\n"
    "one thread a rank. GRADRING_PYTHON names a Python that imports torch; else each python3 on PATH is tried.\n"
    "Processors' seconds, of all ranks together and of training alone, suffer less from whatever else runs.\n"
    "All-reduce beside gloo: gradring bench allreduce --compare gloo\n\n";

/// Options, and what the cases follow from.
struct Given {
  CompareBenchOptions options;
  bench::TimedTrainingSpec training;
  std::int64_t ranks = 0;  ///< 0: not given
  std::int64_t batch_size = 0;
};

/// What stands in docs/results: data parallel over all of a small machine, and one core alone.
std::vector<bench::TimedTrainingSpec> cases_of(const Given& given) {
  std::vector<bench::TimedTrainingSpec> cases(2, given.training);
  cases[0].ranks = 2;
  cases[0].batch_size = 256;
  cases[1].ranks = 1;
  cases[1].batch_size = 512;
  if (given.ranks == 0 && given.batch_size == 0) return cases;
  cases.resize(1);
  if (given.ranks > 0) cases[0].ranks = static_cast<int>(given.ranks);
  if (given.batch_size > 0) cases[0].batch_size = given.batch_size;
  return cases;
}

CommandLine command_line(Given& given) {
  CommandLine line{.command = "gradring bench compare",
                   .options = dataset_options(given.training.dataset, given.training.data_dir)};
  const CommandOption own[] = {
      count_option("ranks", "processes; PyTorch's join by DDP over gloo [2, then 1]", 1, given.ranks),
      count_option("batch-size", "per rank [256, then 512]", 1, given.batch_size),
      count_option("epochs", "of each training [1]", 1, given.training.epochs),
      count_option("steps", "stop each training after so many; 0: never [0]", 0, given.training.steps),
      count_option("rounds", "trainings of each side, in turns [3]", 1, given.options.rounds),
      {.name = "dataloader",
       .help = "PyTorch once more, with batches from a torch.utils.data.DataLoader",
       .read = set_switch("dataloader", given.options.dataloader)},
      {.name = "memory-format",
       .value = "auto|contiguous|channels_last",
       .help = "of PyTorch's tensors; auto tries both and takes the faster [auto]",
       .read = [&given](std::string_view word) { given.options.format = parse_word("memory-format", word, kFormats); }},
      json_option(given.options.json_file)};
  line.options.insert(line.options.end(), std::begin(own), std::end(own));
  return line;
}

}  // namespace

CompareBenchOptions parse_bench_compare(std::span<const std::string> args) {
  Given given;
  given.options.help = read_command_line(command_line(given), args).help;
  given.options.cases = cases_of(given);
  return given.options;
}

std::string bench_compare_help() {
  Given unused;
  return kHead + help_of(command_line(unused).options);
}

}  // namespace gradring::train
