// SPDX-License-Identifier: Apache-2.0
#include "train/cli/exit_code.h"

#include <new>
#include <system_error>

#include "comm/error.h"
#include "data/error.h"
#include "data/fetch/error.h"
#include "data/images/png.h"
#include "train/checkpoint/error.h"
#include "train/report/environment_error.h"
#include "train/trainer/check_replicas.h"
#include "train/trainer/trainer.h"

namespace gradring::train {
namespace {

template <class E>
bool is(const std::exception& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

}  // namespace

ExitCode exit_code_of(const std::exception& error) {
  if (is<comm::PeerLost>(error)) return kPeerLost;
  if (is<comm::Timeout>(error)) return kTimeout;
  if (is<ReplicaError>(error) || is<comm::Desync>(error)) return kReplicasDiffer;
  if (is<DivergedError>(error)) return kDiverged;
  if (is<data::DataError>(error) || is<CheckpointError>(error)) return kBadData;
  if (is<data::FetchError>(error) || is<data::NoPngError>(error)) return kEnvironment;
  if (is<EnvironmentError>(error) || is<DeviceError>(error)) return kEnvironment;
  if (is<FileError>(error) || is<SaveError>(error)) return kEnvironment;
  if (is<std::bad_alloc>(error) || is<std::system_error>(error)) return kEnvironment;
  if (is<InvalidArgument>(error)) return kUsage;
  return kTrainingFailed;
}

std::string message_of(const std::exception& error) {
  if (is<std::bad_alloc>(error)) return "there is not enough memory: lower --batch-size, or start fewer ranks";
  return error.what();
}

}  // namespace gradring::train
