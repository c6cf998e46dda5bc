// SPDX-License-Identifier: Apache-2.0
#include "train/app/commands/train_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "train/app/commands/rank_start.h"
#include "train/app/commands/run_banner.h"
#include "train/app/commands/run_header.h"
#include "train/app/commands/run_output.h"
#include "train/core/faults/injected_faults.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/datasets.h"
#include "train/core/setup/rendezvous.h"
#include "train/core/setup/run_directory.h"
#include "train/core/setup/run_settings.h"
#include "train/core/setup/shared_run_dir.h"
#include "train/core/setup/start.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/trainer.h"
#include "train/core/trainer/training_state.h"
#include "train/launch/workers/worker_files.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/checkpoint_writer.h"
#include "train/records/checkpoint/error.h"
#include "train/records/metrics/console.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/line_file.h"
#include "train/records/metrics/metrics.h"
#include "train/records/metrics/progress.h"
#include "train/records/trace/run_trace.h"
#include "train/view/runs/run.h"
#include "train/view/runs/skim_line.h"
#include "train/view/tensorboard/tensorboard_sink.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// Test images that the sinks of a new run show.
tensorboard::Tiles some_of(const data::Dataset& dataset) {
  constexpr std::int64_t kMostSamples = 25;
  tensorboard::Tiles samples{
      .height = dataset.shape()[0], .width = dataset.shape()[1], .channels = dataset.shape()[2], .images = {}};
  for (std::int64_t i = 0; i < std::min(kMostSamples, dataset.size()); ++i)
    samples.images.emplace_back(dataset.pixels(i).begin(), dataset.pixels(i).end());
  return samples;
}

/// Opens rank 0's metrics and progress display, and every rank's log, which it returns.
RankLog& open_reports(const TrainConfig& config, const Directory& run_dir, const WorkerEnvironment& environment,
                      const Compute& compute, const data::Dataset& test_set, Console& out, MetricsFan& metrics) {
  if (environment.rank == 0) {
    metrics.add(std::make_unique<JsonLinesSink>(run_dir.at(metrics_of(run_dir.path()))));
    if (logs_to(config, kTensorBoard))
      metrics.add(std::make_unique<tensorboard::TensorBoardSink>(run_dir.at(tensorboard_of(run_dir.path())),
                                                                 some_of(test_set)));
    metrics.add(make_progress(config.progress, out));
  }
  const fs::path path = log_file(run_dir.path(), environment.rank);
  auto log = std::make_unique<RankLog>(run_dir.at(path));
  RankLog& opened = *log;
  metrics.add(std::move(log));
  out.on_failure([&opened, path](const std::string& message) {
    print_to_stderr(fmt::format("gradring train: {}; training continues, see {}\n", message, path.string()));
    opened.say(message + "; training continues");
  });
  opened.say(fmt::format("rank {} of {}, process {}{}: {} by {}", environment.rank, environment.world_size, ::getpid(),
                         environment.launcher.empty() ? "" : ", started by " + environment.launcher,
                         compute.device->description(), compute.backend->name()));
  for (const std::string& remark : compute.remarks) opened.say(remark);
  return opened;
}

/// What its directory says of the run, if it can be read: the results are known without.
RunFigures figures_in(const fs::path& run_dir) try {
  return open_run(run_dir, wall_time(), skim_line).figures;
} catch (const Error&) {
  return {};
}

FinishedRun finished_run(const Summary& summary, const TrainConfig& config, const WorkerEnvironment& environment,
                         const RunOutput& output) {
  return {.summary = summary,
          .config = config,
          .figures = figures_in(output.current_path()),
          .started_by = started_by(environment),
          .run_dir = output.current_path(),
          .shown_dir = output.shown_path()};
}

/// Hooks of the thread that writes checkpoints, with its slice of the trace.
SaveHooks traced(SaveHooks hooks, kernels::TraceTrack& track) {
  using kernels::TraceTrack;
  const auto begin = std::make_shared<std::int64_t>(0);  // of the checkpoint that is being written
  return {.check = std::move(hooks.check),
          .before =
              [before = std::move(hooks.before), begin] {
                *begin = TraceTrack::now();
                before();
              },
          .saved =
              [saved = std::move(hooks.saved), begin, &track](std::int64_t step) {
                saved(step);
                if (!track.recording()) return;
                track.add({.category = kernels::TraceCategory::checkpoint,
                           .name = "write checkpoint",
                           .begin = *begin,
                           .end = TraceTrack::now(),
                           .numbers = {step}});
              }};
}

/// Rank 0's alone. After a power loss no checkpoint is of a later step than the metrics.
std::unique_ptr<CheckpointSink> make_checkpoints(RunOutput& output, const WorkerEnvironment& environment,
                                                 RunTrace* trace) {
  SaveHooks hooks{.check = [&output] { return output.check_directory(); },
                  .before = [metrics = output.directory().at(metrics_of(output.path()))] { sync_file(metrics); },
                  .saved = [file = environment.progress_file](std::int64_t step) { write_progress(file, step); }};
  if (trace) hooks = traced(std::move(hooks), trace->writer());
  return std::make_unique<CheckpointWriter>(output.checkpoints(), std::move(hooks));
}

/// What the GPU adds to the trace of a run, and what a profiler sees of any run. Without CUPTI a remark says so.
TracedDevice traced_device(const TrainConfig& config, const Compute& compute, std::vector<std::string>& remarks) {
  if (!compute.module) return {};
  TracedDevice device{.runs_ahead = true};
  if (compute.module->make_ranges) device.ranges = compute.module->make_ranges();
  if (config.trace.empty()) return device;
  if (compute.simulator) {
    remarks.emplace_back(
        "--trace: the trace has no GPU activities: the GPU is simulated, and CUPTI records what real ones execute");
    return device;
  }
  try {
    device.activities = compute.module->make_device_trace();
  } catch (const DeviceError& error) {
    remarks.push_back(fmt::format("--trace: the trace has no GPU activities: {}", error.what()));
  }
  return device;
}

/// Performs faults as slices of the trace.
InjectedFaults::Perform traced_faults(RunTrace* trace) {
  return [trace](const PlannedFault& fault) {
    const kernels::TraceScope traced(trace ? &trace->compute() : nullptr, kernels::TraceCategory::fault,
                                     trace ? trace->names().keep(std::string(name_of(fault.kind))) : "");
    print_and_perform(fault);
  };
}

/// Rank 0 reads what it has saved.
NewestCheckpoint reader_of_checkpoints(RunOutput& output) {
  return [&output](std::vector<std::string>& remarks) {
    return newest_checkpoint(output.files(), checkpoints_of(output.path()), remarks);
  };
}

FaultedRun faulted_run(const TrainConfig& config, const WorkerEnvironment& environment, const kernels::Device& device) {
  return {.world_size = environment.world_size,
          .attempt = environment.restart_count,
          .recorded = records_steps(config, device)};
}

/// Lost output is an error, unless a launcher would restart the complete run because of it.
void finish_output(Console& out, const WorkerEnvironment& environment) {
  try {
    out.finish();
  } catch (const EnvironmentError&) {
    if (environment.max_restarts == 0) throw;
  }
}

/// Before a resume changes a file of its run directory, all ranks check that they can write theirs.
void check_files_of_resumed(comm::ProcessGroup& group, const RunOutput& output, int rank) {
  const std::string identity =
      group.broadcast_on_host(output.in_place() ? identity_of(output.directory()) : std::string(), 0);
  if (identity.empty()) return;
  const Directory own = rank == 0 ? Directory() : open_identified(identity);
  const Directory& run_dir = rank == 0 ? output.directory() : own;
  const RankLog log(run_dir.at(log_file(run_dir.path(), rank)));
  if (rank == 0) check_metrics(run_dir.at(metrics_of(run_dir.path())));
  group.barrier_on_host();
}

/// What is done at the end of a run.
struct RunEnd {
  std::function<void()> check_directory;  ///< before the last records are written
  std::function<void(const std::exception&)> failed;
};

/// Trains to the end. Records that are missing from a file are an error, also of a run that was asked to stop.
Summary train_and_record(Trainer& trainer, const Compute& compute, MetricsFan& metrics, RunTrace* trace,
                         const RunEnd& end) {
  const auto record = [&](const RunEvent& last) {
    check_simulation(compute);
    end.check_directory();
    metrics.event(last);
    metrics.finish();
    if (trace) trace->finish();
  };
  try {
    Summary summary = trainer.run();
    trainer.check_updates();
    record(end_of(summary));
    return summary;
  } catch (const Preempted& request) {
    record(end_of(request, trainer.progress()));
    throw;
  }
}

/// The same, with what an error asks for.
Summary run_logged(Trainer& trainer, const Compute& compute, MetricsFan& metrics, RankLog& log, RunTrace* trace,
                   const RunEnd& end) {
  try {
    return train_and_record(trainer, compute, metrics, trace, end);
  } catch (const LostDirectoryError&) {
    throw;  // what is still open may be another run's
  } catch (const std::exception& error) {
    log.say(fmt::format("training ended: {}", error.what()));
    if (trace)
      if (const fs::path part = trace->abandon(error.what()); !part.empty())
        log.say(fmt::format("the events of this rank alone are in {}", part.string()));
    if (!dynamic_cast<const Preempted*>(&error)) metrics.event(end_of(error, trainer.progress()));
    end.failed(error);
    throw;
  }
}

}  // namespace

void train_rank(const TrainConfig& config, const WorkerEnvironment& environment, RunRequests& requests,
                RankKeeps& keeps) {
  const bool leads = environment.rank == 0;
  RunOutput output(config, environment);  // rank 0's, until its last file is written
  Directory opened;                       // other ranks' run directory, for their logs
  keeps.compute = prepare_compute(config, environment, keeps.ranks);
  keeps.further = prepare_further(config, environment, keeps.compute);
  const Compute& compute = keeps.compute;
  Start start = leads ? output.find_start() : Start();
  const Datasets sets = open_datasets(config);
  const OwnFiles own = own_files(config, environment, sets);
  keeps.ranks = make_group(environment, group_spec(config), &compute);
  comm::ProcessGroup& group = *keeps.ranks.group;
  std::vector<std::string> remarks = check_ranks_agree(group, config, compute, own);
  Console out;  // before the sinks that write to it
  MetricsFan metrics;
  std::unique_ptr<CheckpointSink> checkpoints;
  const std::vector<FurtherDevice> others = further_devices(keeps.further);
  TracedDevice gpu = traced_device(config, compute, remarks);
  std::optional<RunTrace> trace;
  if (!config.trace.empty() || gpu.ranges) trace.emplace(trace_spec(config), group, std::move(gpu));
  RunTrace* const traced = trace ? &*trace : nullptr;
  InjectedFaults faults(config.faults, faulted_run(config, environment, *compute.device), environment.rank,
                        traced_faults(traced));
  nn::Backend& backend = faults.backend(*compute.backend);
  Trainer trainer(config, {.device = *compute.device,
                           .kernels = compute.kernels,
                           .backend = traced ? traced->backend(backend) : backend,
                           .group = group,
                           .train_set = *sets.train_set,
                           .test_set = *sets.test_set,
                           .validation_set = sets.validation_set.get(),
                           .metrics = metrics,
                           .requests = &requests,
                           .step_hook = &faults,
                           .others = others,
                           .trace = traced});
  begin_training(trainer, config, group, start);
  const TrainConfig resolved = resolved_config(config, compute, environment);
  const auto finished = leads ? output.finished_before(trainer.progress(), trainer.is_over()) : std::nullopt;
  if (group.broadcast_on_host(std::string(finished ? "finished" : ""), 0) == "finished") {
    if (finished) print_finished(out, finished_run(*finished, config, environment, output));
    return finish_output(out, environment);
  }
  check_files_of_resumed(group, output, environment.rank);
  remarks.insert(remarks.begin(), start.remarks.begin(), start.remarks.end());
  if (leads) {
    std::ranges::move(output.open(resolved, trainer.progress()), std::back_inserter(remarks));
    keeps.run_dir = output.shown_path();
    checkpoints = make_checkpoints(output, environment, traced);
    trainer.save_to(*checkpoints, reader_of_checkpoints(output));
  }
  // From here on a request to stop is not an end before the start: the first step answers it.
  requests.at({.doing = "starting", .steps = trainer.progress().steps, .epoch = trainer.progress().epoch});
  const std::string identity = group.broadcast_on_host(leads ? identity_of(output.directory()) : std::string(), 0);
  if (!leads) opened = open_identified(identity);
  const Directory& run_dir = leads ? output.directory() : opened;
  if (trace) trace->write_in(run_dir);
  RankLog& log = open_reports(config, run_dir, environment, compute, *sets.test_set, out, metrics);
  if (leads) output.begin();
  const RunHeader header = run_header(resolved, compute, trainer, environment);
  metrics.event(header);
  if (environment.restart_count > 0)
    metrics.event(RestartRecord{.step = trainer.progress().steps, .attempt = environment.restart_count});
  faults.announce_to([&metrics](const PlannedFault& fault) {
    metrics.event(FaultRecord{.step = fault.step, .rank = fault.rank, .kind = std::string(name_of(fault.kind))});
  });
  if (leads && config.progress != "none") print_start(out, header, output.shown_path(), output.shown_source());
  for (const std::string& remark : remarks) metrics.remark(remark);
  if (leads && trainer.is_over())
    metrics.remark(fmt::format("the training is already complete at step {}: nothing is trained; {}",
                               trainer.progress().steps, longer_advice(config)));
  for (const std::string& remark : faults.remarks()) metrics.remark(remark);
  if (const auto steps = trainer.progress().steps) log.say(fmt::format("resumes after step {}", steps));

  const auto check_directory = [&] {
    if (!leads) return;
    for (const std::string& remark : output.check_directory()) metrics.remark(remark);
  };
  const auto failed = [&](const std::exception& error) {
    if (!leads) return;
    output.fail(unfinished_run(error, trainer.progress(), resolved, environment.world_size));
    keeps.run_dir = output.shown_path();
  };
  const Summary summary = run_logged(trainer, compute, metrics, log, traced, {check_directory, failed});
  for (const std::string& remark : faults.closing_remarks())
    print_to_stderr(fmt::format("gradring train: {}\n", remark));
  if (!leads) return;
  output.finish(summary);
  if (config.progress != "none") print_result(out, finished_run(summary, config, environment, output));
  finish_output(out, environment);
}

void dry_run(const TrainConfig& config, const WorkerEnvironment& environment) {
  const Ranks nobody;  // no kernel is chosen in a dry run
  Compute compute = prepare_compute(config, environment, nobody);
  prepare_further(config, environment, compute);
  PosixFileSystem files;
  if (environment.rank == 0) find_start(config, named_run_dir(config.run_dir), files, environment.restart_count > 0);
  const Datasets sets = open_datasets(config);
  // Options that can be checked only with device, data and ranks.
  memory_plan_spec(config, *compute.device, *sets.train_set, environment.world_size);
  plan_faults(config.faults, faulted_run(config, environment, *compute.device));
  if (environment.rank != 0) return;
  print_text("{}: {} training and {} test samples of {}; {} by {}; nothing was trained (--dry-run)\n",
             sets.train_set->name(), sets.train_set->size(), sets.test_set->size(), sets.train_set->shape().to_string(),
             compute.device->description(), compute.backend->name());
}

}  // namespace gradring::train
