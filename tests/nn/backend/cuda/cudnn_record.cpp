// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/backend/cuda/cudnn_record.h"

#include <array>
#include <map>
#include <sstream>
#include <stdexcept>

#include "kernels/host/host_device.h"
#include "nn/backend/kernels/kernel_plans.h"
#include "tests/nn/backend/cuda/model_convolutions.h"
#include "tests/nn/backend/cuda/recorded_texts.h"

namespace gradring::tests {
namespace {

using kernels::DType;
using nn::ConvPass;

constexpr std::int64_t kBatch = 512;

constexpr std::array<std::string_view, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> kNotes = {"tensor_core",
                                                                                  "down_convert_inputs",
                                                                                  "reduced_precision_reduction",
                                                                                  "fft",
                                                                                  "nondeterministic",
                                                                                  "winograd",
                                                                                  "winograd_4x4",
                                                                                  "winograd_6x6",
                                                                                  "winograd_13x13",
                                                                                  "strict_nan_prop"};

/// "25:reduced_precision_reduction,nondeterministic"
std::string text_of(const OfferedEngine& engine) {
  std::string text = std::to_string(engine.index);
  for (const cudnnBackendNumericalNote_t note : engine.notes)
    text += (text.find(':') == text.npos ? ":" : ",") + std::string(name_of(note));
  return text;
}

OfferedEngine parse_engine(const std::string& text) {
  std::istringstream parts(text);
  OfferedEngine engine;
  parts >> engine.index;
  parts.get();
  for (std::string note; std::getline(parts, note, ',');) {
    const auto* const found = std::ranges::find(kNotes, note);
    if (found == kNotes.end()) throw std::runtime_error("cudnn_record.txt has a note '" + note + "'");
    engine.notes.push_back(static_cast<cudnnBackendNumericalNote_t>(found - kNotes.begin()));
  }
  return engine;
}

/// "sm_90 | wgrad f16 dw f32 x 512 28 28 1 ... | 0:strict_nan_prop 1 20:nondeterministic"
Offer parse_offer(const std::string& line) {
  const std::size_t first = line.find(" | "), second = line.find(" |", first + 3);
  if (second == line.npos) throw std::runtime_error("cudnn_record.txt has a line '" + line + "'");
  Offer offer{.gpu = line.substr(0, first), .problem = line.substr(first + 3, second - first - 3), .engines = {}};
  std::istringstream engines(line.substr(second + 2));
  for (std::string engine; engines >> engine;) offer.engines.push_back(parse_engine(engine));
  return offer;
}

}  // namespace

CudnnRecord CudnnRecord::read() {
  std::istringstream text(kCudnnRecord);
  CudnnRecord record;
  if (!(text >> record.version >> record.version)) throw std::runtime_error("cudnn_record.txt names no version");
  std::string line;
  std::getline(text, line);
  while (std::getline(text, line)) record.offers.push_back(parse_offer(line));
  return record;
}

CudnnRecord CudnnRecord::ask() {
  CudnnRecord record;
  for (const GpuModel& gpu : {a100(), h100()}) {
    const DevicelessCudnn cudnn(gpu);
    const nn::CudnnApi api = cudnn.api();
    record.version = cudnn_version_text(api.get_version());
    for (const auto& nodes :
         convolutions_of(nn::convnet({28, 28, 1}, 10), kBatch, nn::ProgramMode::training, DType::f32))
      for (const nn::ConvProblem& problem : problems_of(nn::conv2d_geometry(nodes.front())))
        record.offers.push_back(
            {.gpu = gpu.architecture(),
             .problem = problem.key(),
             .engines = engines_of(nn::engine_configs(api, nn::make_graph(api, nullptr, problem)))});
  }
  return record;
}

std::string CudnnRecord::text() const {
  std::string text = "cuDNN " + version + "\n";
  for (const Offer& offer : offers) {
    text += offer.gpu + " | " + offer.problem + " |";
    for (const OfferedEngine& engine : offer.engines) text += " " + text_of(engine);
    text += "\n";
  }
  return text;
}

const Offer* CudnnRecord::find(std::string_view gpu, std::string_view kind) const {
  for (const Offer& offer : offers)
    if (offer.gpu == gpu && offer.problem.starts_with(std::string(kind) + " x ")) return &offer;
  return nullptr;
}

std::vector<nn::ConvProblem> problems_of(const kernels::conv2d::Geometry& geometry) {
  std::vector<nn::ConvProblem> problems;
  const auto add = [&](ConvPass pass, DType dtype, DType dw_dtype) {
    problems.push_back({.pass = pass, .geometry = geometry, .dtype = dtype, .dw_dtype = dw_dtype});
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const ConvPass pass : {ConvPass::forward, ConvPass::forward_bias, ConvPass::dgrad, ConvPass::wgrad})
      add(pass, dtype, dtype);
    if (dtype != DType::f32) add(ConvPass::wgrad, dtype, DType::f32);
  }
  return problems;
}

std::vector<OfferedEngine> engines_of(const std::vector<nn::CudnnEngineConfig>& configs) {
  std::map<std::int64_t, OfferedEngine> engines;
  for (const nn::CudnnEngineConfig& config : configs) {
    const std::int64_t index = std::stoll(config.name.substr(std::string_view("engine ").size()));
    engines.try_emplace(index, OfferedEngine{.index = index, .notes = config.notes});
  }
  std::vector<OfferedEngine> ascending;
  for (const auto& [index, engine] : engines) ascending.push_back(engine);
  return ascending;
}

std::string_view name_of(cudnnBackendNumericalNote_t note) { return kNotes.at(static_cast<std::size_t>(note)); }

}  // namespace gradring::tests
