// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/own_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include <string>
#include <vector>

#include "data/datasets/class_names.h"
#include "data/datasets/open_dataset.h"
#include "data/files/byte_source.h"
#include "kernels/base/error.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_npy.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_python.h"

namespace gradring::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::Bytes;
using tests::bytes_of;
using tests::npy_bytes;

class Arrays : public ::testing::Test {
 protected:
  Arrays() { tests::write_arrays(folder_); }

  void write(const char* name, const Bytes& bytes) const { folder_.write(name, bytes); }
  void write_text(const char* name, const std::string& text) const { write(name, Bytes(text.begin(), text.end())); }
  std::unique_ptr<Dataset> open(Split split = Split::train) const {
    return open_dataset({.name = kArrays, .data_dir = folder_.path()}, split);
  }
  DatasetFacts facts() const { return facts_of(DatasetSpec{.name = kArrays, .data_dir = folder_.path()}); }
  std::string error(Split split = Split::train) const {
    return tests::message_of<DataError>([&] { open(split); });
  }

  const tests::TempFolder folder_;
};

TEST_F(Arrays, HoldWhatNumPyWrote) {
  const auto train = open(), test = open(Split::test);
  EXPECT_EQ(train->name(), "arrays");
  EXPECT_EQ(train->size(), 2);
  EXPECT_EQ(train->shape(), kernels::Shape({2, 3, 1}));
  EXPECT_EQ(train->classes(), 3);
  EXPECT_THAT(train->class_names(), ElementsAre("0", "1", "2"));
  EXPECT_EQ(train->label(0), 2);
  EXPECT_EQ(train->label(1), 0);
  EXPECT_THAT(train->pixels(1), ElementsAre(250, 251, 252, 253, 254, 255));
  EXPECT_EQ(test->classes(), 3) << "those of the training labels";
  EXPECT_EQ(test->label(0), 1);
}

TEST_F(Arrays, HaveFactsWithoutTheirPixels) {
  EXPECT_EQ(facts(), facts_of(*open()));
  write_text("class_names.txt", "rose\r\ntulip\nT-shirt/top \xc3\xbc\n\n");
  EXPECT_THAT(facts().class_names, ElementsAre("rose", "tulip", "T-shirt/top \xc3\xbc"));
  EXPECT_EQ(facts(), facts_of(*open()));
  EXPECT_THAT(open(Split::test)->class_names(), ElementsAre("rose", "tulip", "T-shirt/top \xc3\xbc"));
}

TEST_F(Arrays, MayHaveChannelsAndColumnsOfLabels) {
  write("train_images.npy", npy_bytes("|u1", "(2, 1, 2, 3)", Bytes(12, 7)));
  write("train_labels.npy", npy_bytes("|u1", "(2, 1)", {1, 0}));
  EXPECT_EQ(open()->shape(), kernels::Shape({1, 2, 3}));
  EXPECT_EQ(open()->label(0), 1);
}

TEST_F(Arrays, TakeFloatsFromZeroToOne) {
  std::vector<float> values;
  std::vector<double> doubles;
  for (int i = 0; i < 256; ++i) {
    values.push_back(static_cast<float>(i) / 255);
    doubles.push_back(i / 255.0);
  }
  Bytes big_endian = bytes_of(values);
  for (std::size_t i = 0; i < big_endian.size(); i += 4) std::reverse(&big_endian[i], &big_endian[i] + 4);
  write("train_labels.npy", npy_bytes("|u1", "(2,)", {0, 1}));
  for (const Bytes& images :
       {npy_bytes("<f4", "(2, 8, 16)", bytes_of(values)), npy_bytes("<f8", "(2, 8, 16)", bytes_of(doubles)),
        npy_bytes(">f4", "(2, 8, 16)", big_endian)}) {
    write("train_images.npy", images);
    const auto train = open();
    for (int i = 0; i < 256; ++i) ASSERT_EQ(train->pixels(i / 128)[static_cast<std::size_t>(i % 128)], i);
  }
}

TEST_F(Arrays, MayHaveManyClasses) {
  write("train_labels.npy", npy_bytes("<u2", "(2,)", bytes_of<std::uint16_t>({999, 300})));
  EXPECT_EQ(open()->classes(), 1000);
  EXPECT_EQ(open()->label(0), 999);
}

/// A file of the data set, what is in it instead, and a part of the message.
struct Bad {
  const char* file;
  Bytes bytes;
  const char* message;
};

Bytes text(const std::string& text) { return {text.begin(), text.end()}; }

Bytes header(const std::string& dictionary) { return npy_bytes(dictionary, Bytes(12, 0)); }

const std::vector<Bad>& bad_files() {
  static const std::string images = "train_images.npy", labels = "train_labels.npy";
  static const std::vector<Bad> bad = {
      {"train_images.npy", {}, "is empty"},
      {"train_images.npy", text("PK\x03\x04 more bytes"), "is a .npz archive"},
      {"train_images.npy", text("version https://git-lfs.github.com/spec/v1"), "is a Git LFS pointer"},
      {"train_images.npy", text("<!DOCTYPE html><html>"), "is a web page"},
      {"train_images.npy", text("1,2,3\n4,5,6\n"), "is not a .npy file"},
      {"train_images.npy", text("\x93NUMPY"), "ends within its header"},
      {"train_images.npy", text(std::string("\x93NUMPY\x01\x00\x80\x00{'descr'", 19)), "ends within its header"},
      {"train_images.npy", text(std::string("\x93NUMPY\x07\x00\x80\x00{'descr'", 19)), "has version 7 of the format"},
      {"train_images.npy", text(std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f{'descr'", 21)), "at most 64 KiB"},
      {"train_images.npy", header("no dictionary"), "has a header that is not NumPy's"},
      {"train_images.npy", header("{'descr': '|O', 'fortran_order': False, 'shape': (2, 2, 3), }"), "Python objects"},
      {"train_images.npy", header("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2, 3), }"), "column-major"},
      {"train_images.npy", header("{'descr': '<U5', 'fortran_order': False, 'shape': (2, 2, 3), }"), "no numbers"},
      {"train_images.npy", npy_bytes("<c8", "(2, 2, 3)", Bytes(96)), "no numbers"},
      {"train_images.npy", npy_bytes("|u1", "(2, 2, 3)", Bytes(11)), "it is truncated"},
      {"train_images.npy", npy_bytes("|u1", "(2, 2, 3)", Bytes(13)), "it is too long"},
      {"train_images.npy", npy_bytes("|u1", "(1000000, 50000, 50000)", Bytes(12)), "it is truncated"},
      {"train_images.npy", npy_bytes("|u1", "(4294967296, 4294967296, 4294967296)", Bytes(12)), "more values than"},
      {"train_images.npy", npy_bytes("|u1", "(12,)", Bytes(12)), "expected (N, height, width)"},
      {"train_images.npy", npy_bytes("|u1", "(2, 6)", Bytes(12)), "expected (N, height, width)"},
      {"train_images.npy", npy_bytes("|u1", "(2, 1, 3, 2, 1)", Bytes(12)), "expected (N, height, width)"},
      {"train_images.npy", npy_bytes("|u1", "(2, 3, 32, 32)", Bytes(6144)), "images.transpose(0, 2, 3, 1)"},
      {"train_images.npy", npy_bytes("|u1", "(2, 8, 8, 7)", Bytes(896)), "with 1 to 4 channels"},
      {"train_images.npy", npy_bytes("|u1", "(0, 2, 3)", {}), "it holds no images"},
      {"train_images.npy", npy_bytes("|u1", "(2, 0, 3)", {}), "it holds no images"},
      {"train_images.npy", npy_bytes("|u1", "(2, 1, 100000)", Bytes(200000)), "at most 65536 pixels"},
      {"train_images.npy", npy_bytes("<u2", "(2, 2, 3)", Bytes(24)),
       "holds pixels of type <u2, expected uint8, or float32 or float64 from 0 to 1; scale them"},
      {"train_images.npy", npy_bytes(">u2", "(2, 2, 3)", Bytes(24)), "(images >> 8).astype(numpy.uint8)"},
      {"train_images.npy", npy_bytes("|i1", "(2, 2, 3)", Bytes(12)), "from 0 to 255, images.astype(numpy.uint8)"},
      {"train_images.npy", npy_bytes("<f4", "(2, 1, 2)", bytes_of<float>({0, 1, 0.5f, 1.5f})),
       "has the pixel 1.500000 in sample 1, expected floats from 0 to 1"},
      {"train_images.npy", npy_bytes("<f4", "(2, 1, 2)", bytes_of<float>({0, -0.5f, 0, 1})), "in sample 0"},
      {"train_images.npy", npy_bytes("<f8", "(2, 1, 1)", bytes_of<double>({0, std::nan("")})), "has the pixel nan"},
      {"train_images.npy", npy_bytes("|u1", "(3, 2, 2)", Bytes(12)), "holds 2 labels, but train_images.npy holds 3"},
      {"train_labels.npy", npy_bytes("<f8", "(2,)", Bytes(16)), "labels.astype(numpy.int64)"},
      {"train_labels.npy", npy_bytes("|u1", "(2, 3)", Bytes(6)), "labels.argmax(axis=1)"},
      {"train_labels.npy", npy_bytes("|u1", "()", {1}), "expected (N,)"},
      {"train_labels.npy", npy_bytes("|u1", "(0,)", {}), "holds no labels"},
      {"train_labels.npy", npy_bytes("|i1", "(2,)", {1, 0xff}), "has the label -1 in sample 1"},
      {"train_labels.npy", npy_bytes("<i8", "(2,)", bytes_of<std::int64_t>({1, std::int64_t{1} << 40})), "in sample 1"},
      {"train_labels.npy", npy_bytes("<u8", "(2,)", Bytes(16, 0xff)), "has the label 9223372036854775807"},
      {"train_labels.npy", npy_bytes("<i4", "(2,)", bytes_of<std::int32_t>({0, 70000})), "expected labels below 65536"},
      {"train_labels.npy", npy_bytes("|u1", "(2,)", {0, 0}), "has 1 class, expected at least 2"},
      {"class_names.txt", text("a\nb\n"), "names 2 classes, but"},
      {"class_names.txt", text("a\nb\na\n"), "two classes have the name 'a', the second is class 2"},
      {"class_names.txt", text("a\n\nc\n"), "the name of class 1 is empty"},
      {"class_names.txt", text("a\nb\xff\nc\n"), "the name of class 1 is not a line of text in UTF-8"},
      {"class_names.txt", text("a\nb\x01\nc\n"), "the name of class 1 is not a line of text"},
      {"class_names.txt", {}, "has 0 classes"},
      {"class_names.txt", Bytes(5 << 20, 'a'), "class_names.txt"},
  };
  return bad;
}

TEST_F(Arrays, SayWhatIsWrongWithAFile) {
  for (const Bad& bad : bad_files()) {
    SCOPED_TRACE(std::string(bad.file) + ": " + bad.message);
    const tests::TempFolder folder;
    tests::write_arrays(folder);
    folder.write(bad.file, bad.bytes);
    EXPECT_THAT(tests::message_of<DataError>([&] { open_arrays(folder.path(), Split::train); }),
                AllOf(HasSubstr(bad.file), HasSubstr(bad.message), HasSubstr("; ")));
    try {
      facts_of_arrays(folder.path());  // reads no pixels, so it may pass
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr(bad.file));
    }
  }
}

TEST_F(Arrays, AreTruncatedAtEveryByteWithAMessage) {
  const Bytes whole = npy_bytes("<i8", "(2,)", bytes_of<std::int64_t>({2, 0}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write("train_labels.npy", Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_THAT(error(), HasSubstr("train_labels.npy")) << size;
  }
}

TEST_F(Arrays, RejectTestLabelsThatNoTrainingLabelHas) {
  write("test_labels.npy", npy_bytes("|u1", "(1,)", {3}));
  EXPECT_THAT(error(Split::test),
              AllOf(HasSubstr("test_labels.npy: has the label 3 in sample 0"), HasSubstr("training labels end at 2")));
}

TEST_F(Arrays, NameWhatIsMissing) {
  for (const char* name : {"train_images.npy", "train_labels.npy"}) {
    const tests::TempFolder folder;
    tests::write_arrays(folder);
    std::filesystem::remove(folder.path() / name);
    EXPECT_THAT(tests::message_of<DataError>([&] { open_arrays(folder.path(), Split::train); }),
                AllOf(HasSubstr(std::string("holds no ") + name), HasSubstr("--data-dir")));
    const std::string archive = std::filesystem::path(name).replace_extension(".npz").string();
    folder.write(archive, tests::Bytes{'P', 'K'});
    EXPECT_THAT(tests::message_of<DataError>([&] { open_arrays(folder.path(), Split::train); }),
                AllOf(HasSubstr("holds " + archive + ", an archive, and no " + name),
                      HasSubstr("numpy.load(\"" + archive + "\")[KEY]")));
    std::filesystem::remove(folder.path() / archive);
    std::filesystem::create_directory(folder.path() / name);
    EXPECT_THAT(tests::message_of<DataError>([&] { open_arrays(folder.path(), Split::train); }),
                HasSubstr("is not a regular file"));
  }
  EXPECT_THAT(tests::message_of<DataError>([&] { open_arrays(folder_.path() / "absent", Split::train); }),
              HasSubstr("absent: is not a folder"));
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { open_dataset("arrays", Split::train, ""); }),
              HasSubstr("name their folder with --data-dir"));
}

TEST_F(Arrays, NeedPermission) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  std::filesystem::permissions(folder_.path() / "train_images.npy", std::filesystem::perms::none);
  EXPECT_THROW(open(), std::exception);
}

/// What NumPy itself writes, of every type.
TEST_F(Arrays, OfNumPyAreRead) {
  const std::string script = R"(
import sys
try:
    import numpy
except ImportError:
    print("numpy"); sys.exit(77)
images = numpy.arange(2 * 4 * 5 * 3).reshape(2, 4, 5, 3)
labels = numpy.array([3, 1])
for kind in ("u1", "f4", "f8", ">f4", ">f8"):
    numpy.save(f"images_{kind[-2:]}_{len(kind)}.npy", images.astype(kind) / (255 if "f" in kind else 1)
               if "f" in kind else images.astype(kind))
for kind in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", ">i2", ">i4", ">i8"):
    numpy.save(f"labels_{kind[-2:]}_{len(kind)}.npy", labels.astype(kind))
)";
  folder_.write("write.py", text(script));
  const auto end = tests::run_program(tests::python_script({"write.py"}, folder_.path()));
  if (end.code == tests::kPackageMissing || end.code == 127) GTEST_SKIP() << "install numpy by pip";
  ASSERT_EQ(end.code, 0) << end.err;
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const bool is_images = name.starts_with("images_");
    if (!is_images && !name.starts_with("labels_")) continue;
    const tests::TempFolder folder;
    std::filesystem::copy_file(is_images ? entry.path() : folder_.path() / "images_u1_2.npy",
                               folder.path() / "train_images.npy");
    std::filesystem::copy_file(is_images ? folder_.path() / "labels_i8_2.npy" : entry.path(),
                               folder.path() / "train_labels.npy");
    const auto dataset = open_arrays(folder.path(), Split::train);
    EXPECT_EQ(dataset->shape(), kernels::Shape({4, 5, 3}));
    for (std::size_t i = 0; i < 60; ++i) ASSERT_EQ(dataset->pixels(1)[i], 60 + i);
    EXPECT_EQ(dataset->label(0), 3);
    EXPECT_EQ(dataset->label(1), 1);
    ++read;
  }
  EXPECT_EQ(read, 16);
}

}  // namespace
}  // namespace gradring::data
