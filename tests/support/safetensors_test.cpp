// SPDX-License-Identifier: Apache-2.0
#include "tests/support/safetensors.h"

#include <gtest/gtest.h>

#include <fstream>

namespace gradring::tests {
namespace {

class Safetensors : public ::testing::Test {
 protected:
  StoredTensors read(const std::string& header, std::size_t data_bytes) {
    const auto path =
        std::filesystem::path(::testing::TempDir()) / ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ofstream file(path, std::ios::binary);
    const std::uint64_t size = header.size();
    file.write(reinterpret_cast<const char*>(&size), sizeof(size));
    file << header << std::string(data_bytes, '\1');
    file.close();
    return read_safetensors(path);
  }
};

TEST_F(Safetensors, ReadsGoldenValues) {
  const StoredTensors golden = read_golden("convnet_step_seed0");
  EXPECT_EQ(golden.at("images_u8").shape, (std::vector<std::int64_t>{320, 1, 28, 28}));
  EXPECT_EQ(golden.at("labels").as<std::int64_t>().size(), 320u);
  EXPECT_EQ(golden.at("grad.fc_layers.0.weight").elements(), 256 * 1600);
  EXPECT_NEAR(golden.at("loss").as<float>().at(0), 2.3f, 0.1f);
  EXPECT_THROW(golden.at("loss").as<double>(), InvalidArgument);
}

TEST_F(Safetensors, ReadsScalarsAndEmptyTensors) {
  const StoredTensors tensors = read(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                                     R"("b":{"dtype":"U8","shape":[0,3],"data_offsets":[4,4]}})",
                                     4);
  EXPECT_EQ(tensors.at("a").elements(), 1);
  EXPECT_TRUE(tensors.at("b").as<std::uint8_t>().empty());
}

TEST_F(Safetensors, RejectsWhatTheFormatForbids) {
  const std::string good = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_NO_THROW(read("{" + good + "}", 8));
  EXPECT_THROW(read("{" + good + "}", 9), Error) << "bytes after the last tensor";
  EXPECT_THROW(read("{" + good + "}", 7), Error) << "too few bytes";
  EXPECT_THROW(read("{" + good + "," + good + "}", 8), Error) << "duplicate key";
  EXPECT_THROW(read("{" + good + R"(,"b":{"dtype":"U8","shape":[1],"data_offsets":[9,10]}})", 10), Error) << "hole";
  EXPECT_THROW(read(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8), Error) << "shape";
  EXPECT_THROW(read(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), Error) << "negative";
  EXPECT_THROW(read(R"({"a":{"dtype":"Q8","shape":[8],"data_offsets":[0,8]}})", 8), Error) << "dtype";
  EXPECT_THROW(read(" {" + good + "}", 8), Error) << "leading space";
  EXPECT_THROW(read("{", 0), Error) << "no JSON";
}

}  // namespace
}  // namespace gradring::tests
