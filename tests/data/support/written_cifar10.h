// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "tests/support/temp_folder.h"

namespace gradring::tests {

/// One record of CIFAR-10's binary form: `label`, then planes in which pixel i of channel c is (i + 85 c + label) % 256.
Bytes cifar10_record(std::uint8_t label);

/// What cifar10_record's pixels are, in the order height, width, channel.
Bytes cifar10_pixels(std::uint8_t label);

/// `count` records with the labels first, first + 1, ... modulo 10.
Bytes cifar10_bytes(std::size_t count, std::size_t first = 0);

/// The six files, each of `records` records; the labels count on from file to file, test_batch.bin last.
void write_cifar10(const TempFolder& folder, const std::filesystem::path& below, std::size_t records);

}  // namespace gradring::tests
