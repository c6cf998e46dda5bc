// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/catalogue.h"

#include <string>
#include <system_error>
#include <vector>

#include "data/files/byte_source.h"
#include "kernels/base/error.h"
#include "kernels/base/nearest_name.h"

namespace gradring::data {
namespace {

std::string hash_of(const std::filesystem::path& path) {
  const auto source = open_plain(path);
  std::vector<std::uint8_t> piece(1 << 18);
  Sha256Sum sum;
  while (const std::size_t count = source->read(piece)) sum.add(std::as_bytes(std::span(piece).first(count)));
  return to_hex(sum.finish());
}

constexpr CatalogueFile kMnistFiles[] = {
    {.file = {"train-images-idx3-ubyte.gz", 9912422,
              "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
     .unpacked = {"train-images-idx3-ubyte", 47040016,
                  "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"}},
    {.file = {"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
     .unpacked = {"train-labels-idx1-ubyte", 60008,
                  "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"}},
    {.file = {"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
     .unpacked = {"t10k-images-idx3-ubyte", 7840016,
                  "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"}},
    {.file = {"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
     .unpacked = {"t10k-labels-idx1-ubyte", 10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}},
};

constexpr std::string_view kMnistMirrors[] = {
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://raw.githubusercontent.com/fgnt/mnist/master/",
};

constexpr CatalogueFile kFashionMnistFiles[] = {
    {.file = {"train-images-idx3-ubyte.gz", 26421880,
              "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
     .unpacked = {"train-images-idx3-ubyte", 47040016,
                  "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"}},
    {.file = {"train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
     .unpacked = {"train-labels-idx1-ubyte", 60008,
                  "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"}},
    {.file = {"t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
     .unpacked = {"t10k-images-idx3-ubyte", 7840016,
                  "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"}},
    {.file = {"t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"},
     .unpacked = {"t10k-labels-idx1-ubyte", 10008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"}},
};

constexpr std::string_view kFashionMnistMirrors[] = {
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
};

constexpr std::uint64_t kCifar10FileBytes = 30'730'000;
constexpr CatalogueFile kCifar10Files[] = {
    {.file = {"data_batch_1.bin", kCifar10FileBytes,
              "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"}},
    {.file = {"data_batch_2.bin", kCifar10FileBytes,
              "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"}},
    {.file = {"data_batch_3.bin", kCifar10FileBytes,
              "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"}},
    {.file = {"data_batch_4.bin", kCifar10FileBytes,
              "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"}},
    {.file = {"data_batch_5.bin", kCifar10FileBytes,
              "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"}},
    {.file = {"test_batch.bin", kCifar10FileBytes, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"}},
};

constexpr std::string_view kCifarMirrors[] = {
    "https://www.cs.toronto.edu/~kriz/",
    "https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/",
};

/// The hash of the archive counts; the format determines their sizes.
constexpr CatalogueFile kCifar100Files[] = {
    {.file = {"train.bin", 153'700'000, ""}},
    {.file = {"test.bin", 30'740'000, ""}},
};

constexpr CatalogueEntry kCatalogue[] = {
    {.name = "mnist",
     .title = "handwritten digits: 60,000 + 10,000 images of 28 x 28, grey, 10 classes",
     .authors = "Y. LeCun, C. Cortes, C. Burges",
     .files = kMnistFiles,
     .mirrors = kMnistMirrors},
    {.name = "fashion-mnist",
     .title = "clothes: 60,000 + 10,000 images of 28 x 28, grey, 10 classes",
     .authors = "H. Xiao, K. Rasul, R. Vollgraf (Zalando SE); MIT licence",
     .files = kFashionMnistFiles,
     .mirrors = kFashionMnistMirrors},
    {.name = "cifar10",
     .title = "animals and vehicles: 50,000 + 10,000 images of 32 x 32, colour, 10 classes",
     .authors = "A. Krizhevsky, V. Nair, G. Hinton",
     .files = kCifar10Files,
     .archive = {"cifar-10-binary.tar.gz", 170'052'171,
                 "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"},
     .mirrors = kCifarMirrors},
    {.name = "cifar100",
     .title = "animals, plants and things: 50,000 + 10,000 images of 32 x 32, colour, 100 classes",
     .authors = "A. Krizhevsky, V. Nair, G. Hinton",
     .files = kCifar100Files,
     .archive = {"cifar-100-binary.tar.gz", 168'513'733,
                 "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"},
     .mirrors = kCifarMirrors},
};

}  // namespace

FileCheck check_file(const std::filesystem::path& path, const KnownFile& expected) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {.state = FileState::missing, .found = "is missing"};
  const std::uint64_t bytes = std::filesystem::file_size(path);
  if (bytes != expected.bytes)
    return {.state = FileState::wrong,
            .found = "has " + std::to_string(bytes) + " bytes, expected " + std::to_string(expected.bytes)};
  if (expected.sha256.empty()) return {};
  const std::string hash = hash_of(path);
  if (hash != expected.sha256)
    return {.state = FileState::wrong, .found = "has SHA-256 " + hash + ", expected " + std::string(expected.sha256)};
  return {};
}

std::span<const CatalogueEntry> catalogue() { return kCatalogue; }

const CatalogueEntry& find_entry(std::string_view name) {
  std::vector<std::string_view> names;
  std::string listed;
  for (const CatalogueEntry& entry : kCatalogue) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
    listed += (listed.empty() ? "" : ", ") + std::string(entry.name);
  }
  if (name == "digits") throw InvalidArgument("digits is generated: there are no files to fetch or verify");
  throw InvalidArgument("unknown dataset '" + std::string(name) + "' to fetch: expected one of " + listed + "." +
                        did_you_mean(name, names));
}

}  // namespace gradring::data
