// SPDX-License-Identifier: Apache-2.0
// Each rule finds what is planted in a small tree, at its line, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/rules/rules.h"
#include "tests/support/temp_folder.h"

namespace gradring::rules {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::UnorderedElementsAre;

namespace fs = std::filesystem;

constexpr const char* kLicence = "// SPDX-License-Identifier: Apache-2.0\n";

auto at(const std::string& path, int line) {
  return testing::AllOf(Field(&Violation::path, path), Field(&Violation::line, line));
}

class Planted : public testing::Test {
 protected:
  /// Writes a file whose second line is `line`, the first being the licence.
  void plant(const std::string& path, const std::string& line) { plant_bare(path, kLicence + line); }

  void plant_bare(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }

  SourceTree tree() const { return read_tree(root_); }

  const tests::TempFolder folder_;
  const fs::path& root_ = folder_.path();
};

TEST_F(Planted, IncludeUpwards) {
  plant("kernels/a.h", "#include \"nn/b.h\"");
  plant("nn/b.h", "#include \"comm/c.h\"");
  plant("comm/c.h", "#include \"kernels/a.h\"");
  plant("data/d.h", "#include \"tests/e.h\"");
  plant("train/f.h", "#include \"data/d.h\"");
  EXPECT_THAT(include_directions(tree()), ElementsAre(at("data/d.h", 2), at("kernels/a.h", 2), at("nn/b.h", 2)));
}

TEST_F(Planted, IncludeWithoutFullPath) {
  plant("nn/b.h", "");
  plant("nn/a.h", "#include \"b.h\"");
  plant("nn/c.h", "#include <nn/b.h>");
  plant("nn/d.h", "#include \"nn/b.h\"");
  EXPECT_THAT(include_paths(tree()), ElementsAre(at("nn/a.h", 2), at("nn/c.h", 2)));
}

TEST_F(Planted, VendorOutsideItsDoor) {
  plant("nn/backend/cuda/conv.cpp", "#include <cudnn.h>");
  plant("nn/layers/conv.cpp", "#include <cudnn.h>");
  plant("nn/backend/cpu/conv.cpp", "#include <oneapi/dnnl/dnnl.hpp>");
  plant("train/conv.cpp", "#include <oneapi/dnnl/dnnl.hpp>");
  plant("comm/ring.cpp", "#include <nccl.h>");
  plant("comm/transports/nccl/nccl.cpp", "#include <nccl.h>");
  plant("data/images/libpng_image.cpp", "#include <png.h>");
  plant("train/app/commands/predict.cpp", "#include <png.h>");
  plant("data/images/libjpeg_image.cpp", "#include <jpeglib.h>");
  plant("kernels/simulated_gpu/ptx/zstandard.cpp", "#include <zstd.h>");
  plant("data/files/gzip.cpp", "#include <zstd.h>");
  plant("kernels/relu/relu.h", "#include <cuda_runtime.h>");
  plant("kernels/relu/relu.cu", "#include <cuda_fp16.h>");
  plant("kernels/runtime/cuda/stream.cpp", "#include <cuda_runtime.h>");
  plant("kernels/runtime/host/stream.cpp", "#include <cuda_runtime.h>");
  plant("kernels/simt/engine/executor.h", "#include <cuda_runtime.h>");
  plant("kernels/simt/on_cuda.h", "#include <cuda_runtime.h>");
  EXPECT_THAT(vendor_doors(tree()), ElementsAre(at("comm/ring.cpp", 2), at("data/files/gzip.cpp", 2),
                                                at("kernels/relu/relu.h", 2), at("kernels/runtime/host/stream.cpp", 2),
                                                at("kernels/simt/engine/executor.h", 2), at("nn/layers/conv.cpp", 2),
                                                at("train/app/commands/predict.cpp", 2), at("train/conv.cpp", 2)));
}

TEST_F(Planted, ShortHeaderOfOneIncluder) {
  for (const char* name : {"one", "two", "unused", "tested"}) plant(std::string("nn/") + name + ".h", "");
  plant("nn/long.h", std::string(40, '\n'));
  plant("nn/one.cpp", "#include \"nn/one.h\"\n#include \"nn/two.h\"\n#include \"nn/long.h\"");
  plant("nn/user.cpp", "#include \"nn/one.h\"\n#include \"nn/two.h\"");
  plant("tests/nn/one_test.cpp", "#include \"nn/one.h\"\n#include \"nn/tested.h\"");
  EXPECT_THAT(short_headers(tree()), ElementsAre(at("nn/one.h", 0)));
}

TEST_F(Planted, FolderCycle) {
  plant("train/core/config/a.h", "#include \"train/core/faults/b.h\"");
  plant("train/core/faults/b.h", "#include \"train/core/memory/deep/c.h\"");
  plant("train/core/memory/deep/c.h", "#include \"train/core/config/a.h\"");
  plant("train/app/commands/d.h", "#include \"train/core/config/a.h\"");
  plant("comm/tcp/e.h", "#include \"comm/group.h\"");
  plant("comm/group.h", "#include \"comm/tcp/e.h\"");
  const Violations found = folder_cycles(tree());
  ASSERT_THAT(found, ElementsAre(at("comm", 0), at("train/core/config", 0)));
  EXPECT_THAT(found[1].message, testing::HasSubstr("train/core/config, train/core/faults, train/core/memory"));
}

TEST_F(Planted, CycleOfGroups) {
  plant("train/core/config/a.h", "#include \"train/view/page/b.h\"");
  plant("train/view/runs/c.h", "#include \"train/core/ddp/d.h\"");
  plant("train/view/page/b.h", "");
  plant("train/core/ddp/d.h", "");
  EXPECT_THAT(folder_cycles(tree()), ElementsAre(at("train/core", 0)));
}

TEST_F(Planted, UpwardInclude) {
  plant("train/launch/launcher.h", "");
  plant("train/launch/launcher.cpp", "#include \"train/launch/nodes/leader.h\"");
  plant("train/launch/nodes/leader.h", "#include \"train/launch/launcher.h\"");
  plant("comm/transports/tcp/mesh.h", "#include \"comm/transport/transport.h\"");
  plant("comm/transport/transport.h", "");  // includes nothing of comm/transport/tcp
  EXPECT_THAT(upward_includes(tree()), ElementsAre(at("train/launch/nodes/leader.h", 2)));
}

TEST_F(Planted, IncludeOfAnUnstatedRoom) {
  plant_bare("train/CMakeLists.txt",
             "gradring_room(optim\n  SOURCES a.cpp)\n\ngradring_room(ddp  # a comment, with ROOMS cli\n  ROOMS optim\n"
             "  LIBRARIES gradring_nn gradring_comm ZLIB::ZLIB)\nset(DATA gradring_data)");
  plant("nn/a.h", "");
  plant("data/a.h", "");
  plant("train/core/optim/a.h", "#include \"nn/a.h\"");
  plant("train/core/ddp/b.h", "#include \"train/core/optim/a.h\"");
  plant("train/core/ddp/deep/c.h", "#include \"train/app/commands/d.h\"");
  plant("train/core/ddp/e.h", "#include \"data/a.h\"\n#include \"train/core/ddp/b.h\"\n#include \"nn/a.h\"");
  plant("train/app/commands/d.h", "#include \"nn/a.h\"");
  EXPECT_THAT(stated_rooms(tree()),
              UnorderedElementsAre(at("train/core/optim/a.h", 2), at("train/core/ddp/deep/c.h", 2),
                                   at("train/core/ddp/e.h", 2), at("train/app/commands/d.h", 2),
                                   at("train/CMakeLists.txt", 6)));  // gradring_comm, of which nothing is included
}

TEST_F(Planted, BenchmarkInTraining) {
  plant("kernels/bench/a.h", "");
  plant("nn/backend/cpu/onednn_peers.h", "#include \"kernels/bench/a.h\"");
  plant("train/bench/b.h", "#include \"kernels/bench/a.h\"");
  plant("train/app/program/c.cpp", "#include \"train/bench/b.h\"");
  plant("train/app/commands/d.cpp", "#include \"train/bench/b.h\"");
  plant("train/core/setup/e.cpp", "#include \"nn/backend/cpu/onednn_peers.h\"");
  EXPECT_THAT(bench_includes(tree()), ElementsAre(at("train/app/commands/d.cpp", 2), at("train/core/setup/e.cpp", 2)));
}

TEST_F(Planted, TypeDefinedTwice) {
  plant("train/a/x.h", "namespace gradring::train {\nstruct Option;\nstruct Option { int a; };\n}");
  plant("train/b/x.h", "namespace gradring {\nnamespace train {\nclass Option final : Base {\n};\n}\n}");
  plant("train/b/y.cpp",
        "namespace gradring::train {\nnamespace {\nstruct Option {};\n}\nvoid f() { struct Option {}; }\n}");
  plant("train/b/z.h", "namespace gradring::train {\nstruct Table { struct Option {}; };\nenum class Kind { a };\n}");
  plant("comm/z.h", "namespace gradring::comm {\nenum class Kind { a };\n}");
  EXPECT_THAT(repeated_types(tree()), ElementsAre(at("train/b/x.h", 4)));
}

TEST_F(Planted, RetiredWord) {
  plant("comm/a.h", "class Doorway;  // a stranger knocks");
  plant("comm/roll_call.h", "// a call of the roll");
  plant("comm/b.h", "class Doorbell;  // lender, override, recommended, in this place");
  plant("comm/c.h", "int place;\nint in_place(Place places_);  // \"place\"");
  EXPECT_THAT(retired_words(tree()), ElementsAre(at("comm/a.h", 2), at("comm/a.h", 2), at("comm/a.h", 2),
                                                 at("comm/c.h", 2), at("comm/c.h", 3), at("comm/roll_call.h", 0)));
}

TEST_F(Planted, WideMarkdown) {
  const std::string wide = std::string(60, 'x') + " " + std::string(60, 'x');
  plant_bare("docs/a.md", "# A\n\n" + wide + "\n\n| " + wide + " |\n\n```\n" + wide + "\n```\n" + wide.substr(0, 100));
  EXPECT_THAT(markdown_widths(tree()), ElementsAre(at("docs/a.md", 3)));
}

TEST_F(Planted, CtestThatPassesWithoutTests) {
  plant_bare("docs/a.md",
             "`ctest -L nn`, not `ctest --preset release -L nn`\nctest --test-dir b -L nn\n"
             "ctest --test-dir b --no-tests=error; ctest runs the rest");
  plant_bare("docs/results/a.md", "ctest -L nn");
  plant_bare("CMakePresets.json",
             "{ \"configurePreset\": \"release\" }\n\"testPresets\": [\n"
             "{ \"name\": \"base\", \"execution\": { \"noTestsAction\": \"error\" } },\n"
             "{ \"inherits\": \"base\", \"configurePreset\": \"release\" },\n"
             "{ \"configurePreset\": \"debug\" }");
  EXPECT_THAT(ctest_commands(tree()),
              UnorderedElementsAre(at("docs/a.md", 1), at("docs/a.md", 2), at("CMakePresets.json", 5)));
}

TEST_F(Planted, NameOfAMissingFile) {
  plant("comm/a.h", "// see comm/ring.h and comm/a.h, not build/comm/x.h or comm/*.h");
  plant_bare("docs/a.md", "[here](../comm/a.h#L3), [there](b.md), [out](https://example.org/c.md)");
  EXPECT_THAT(documented_paths(tree()), ElementsAre(at("comm/a.h", 2), at("docs/a.md", 1)));
}

TEST_F(Planted, IfInLogic) {
  plant("comm/a.cpp", "#ifdef FAST");
  plant("comm/b.cpp", "  # if FAST");
  plant("comm/c.cpp", "// #if in a comment");
  plant("kernels/lib/copy.cuh", "#if defined(__CUDACC__)");
  EXPECT_THAT(conditional_compilation(tree()), ElementsAre(at("comm/a.cpp", 2), at("comm/b.cpp", 2)));
}

TEST_F(Planted, SharedMemoryThatNoSanitizerSees) {
  plant("kernels/relu/relu.cu", "__shared__ float tile[32];");
  plant("kernels/relu/fine.cu", "SIMT_SHARED(float[32], tile);  // not __shared__");
  plant("tests/kernels/simt/shared.cu", "__shared__ float tile[32];");
  EXPECT_THAT(raw_shared_memory(tree()), ElementsAre(at("kernels/relu/relu.cu", 2)));
}

TEST_F(Planted, OutputThatIsNotEscaped) {
  plant("train/bench/a.cpp", "fmt::print(\"{}\", name);");
  plant("train/app/commands/a_command.cpp", "fmt::print(\"{}\", name);");
  plant("train/view/runs/a.cpp", "std::cerr << name;");
  plant("train/view/runs/fine.cpp", "print_text(\"{}\", name);");
  plant("train/options/print_text.cpp", "fmt::print(\"{}\", escaped);");
  plant("tests/train/a_test.cpp", "std::cout << name;");
  EXPECT_THAT(unescaped_output(tree()), ElementsAre(at("train/app/commands/a_command.cpp", 2),
                                                    at("train/bench/a.cpp", 2), at("train/view/runs/a.cpp", 2)));
}

TEST_F(Planted, DeviceCodeInTheWrongFile) {
  plant("kernels/relu/host_only.cu", "void launch();");
  plant("kernels/relu/relu.cpp", "__global__ void relu_kernel() {}");
  plant("kernels/relu/relu.cu", "__global__ void relu_kernel() {}");
  EXPECT_THAT(device_code(tree()), ElementsAre(at("kernels/relu/relu.cpp", 2), at("kernels/relu/host_only.cu", 0)));
}

TEST_F(Planted, ProcessorsCountedWithoutTheirQuota) {
  plant("train/threads.cpp", "int n = std::thread::hardware_concurrency();");
  plant("nn/threads.cpp", "int n = usable_processors();  // not hardware_concurrency");
  plant("kernels/base/processors.cpp", "int n = ::sysconf(_SC_NPROCESSORS_ONLN);");
  EXPECT_THAT(processor_counts(tree()), ElementsAre(at("train/threads.cpp", 2)));
}

TEST_F(Planted, HeaderWithoutGuard) {
  plant("nn/a.h", "int a();");
  plant("nn/b.h", "#pragma once");
  EXPECT_THAT(headers_once(tree()), ElementsAre(at("nn/a.h", 0)));
}

TEST_F(Planted, NoLicence) {
  plant_bare("nn/a.cpp", "int a;");
  plant_bare("nn/CMakeLists.txt", "add_library(a a.cpp)");
  plant_bare("scripts/a.sh", "#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0");
  plant_bare("scripts/b.sh", "#!/usr/bin/env bash\necho");
  plant_bare("nn/README.md", "# nn");
  EXPECT_THAT(licence_lines(tree()), ElementsAre(at("nn/CMakeLists.txt", 1), at("nn/a.cpp", 1), at("scripts/b.sh", 2)));
}

TEST_F(Planted, PathOfOneMachine) {
  plant("nn/a.cpp", "const char* data = \"/home/someone/data\";");
  plant("nn/b.cpp", "const char* data = \"data/home/x\";");
  EXPECT_THAT(machine_paths(tree()), ElementsAre(at("nn/a.cpp", 2)));
}

TEST_F(Planted, FolderBesideTheDesign) {
  plant("nn/a.cpp", "");
  plant("utils/a.cpp", "");
  plant("build/a.cpp", "");
  plant("train/utils/a.cpp", "");
  plant("kernels/base/file.h", "");
  plant("kernels/base/useful.h", "");
  EXPECT_THAT(settled_folders(tree()),
              UnorderedElementsAre(at("utils", 0), at("train/utils", 0), at("kernels/base/useful.h", 0)));
}

TEST_F(Planted, LongFile) {
  plant("nn/long.cpp", std::string(400, '\n'));
  plant("nn/short.cpp", std::string(300, '\n'));
  EXPECT_THAT(file_lengths(tree()), ElementsAre(at("nn/long.cpp", 0)));
}

TEST(WithoutComments, KeepsCodeAlone) {
  const std::vector<std::string> lines = {
      "int a; // b",          "x /* c",    "d */ y",       "s = \"a // b\\\"\" + z;",
      "n = 1'000; c = '\"';", "r = R\"(a", "b\" c)\" + q;"};
  EXPECT_THAT(without_comments(lines), ElementsAre("int a; ", "x     ", "     y", "s = \"        \" + z;",
                                                   "n = 1'000; c = ' ';", "r =     ", "       + q;"));
}

}  // namespace
}  // namespace gradring::rules
