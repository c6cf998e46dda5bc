// SPDX-License-Identifier: Apache-2.0
// All PTX of the built CUDA module, read by the module under test and a second time by simpler means.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>

#include "kernels/simulated_gpu/ptx/fat_binary.h"
#include "kernels/simulated_gpu/ptx/module.h"
#include "tests/kernels/simulated_gpu/ptx/built_module.h"
#include "tests/support/built_file.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_folder.h"

namespace gradring::ptx {
namespace {

std::size_t count(std::string_view text, std::string_view wanted) {
  std::size_t found = 0;
  for (std::size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) ++found;
  return found;
}

/// In a text without comments, semicolons end instructions and these directives alone.
std::size_t count_instructions(std::string_view text) {
  std::size_t directives = 0;
  for (const auto* word : {".reg ", ".pragma ", "\n.shared ", "\n.local ", "\n.extern ", "\n.global ", "\n.const "})
    directives += count(text, word);
  return count(text, ";") - directives;
}

/// Parts of "%r1, {%r2, %r3}, [%rd1]" between commas that are in no brackets.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else if (c != ' ' && c != '\t' && c != '\n')
      parts.back() += c;
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

std::string inside(const std::string& text) { return text.substr(1, text.size() - 2); }

/// Where labels are in a text. nvcc's are unique in a module, and have lines of their own.
using Labels = std::map<std::string, const char*>;

Labels labels_of(const std::string& text, const Module& module) {
  // The module has a copy of the text.
  const char* const begin = module.version().data() - text.find(module.version());
  Labels found;
  for (std::size_t at = text.find("\n$"); at != text.npos; at = text.find("\n$", at + 1))
    found.emplace(text.substr(at + 1, text.find(':', at) - at - 1), begin + at);
  return found;
}

/// Compares the operands of a kernel with their texts.
class SecondReader {
 public:
  SecondReader(const Labels& labels, const Kernel& kernel) : labels_(labels), kernel_(kernel) {}

  void compare(const Instruction& instruction) {
    static const std::regex form(R"((?:@(!?)(\S+)\s+)?([a-z][\w.:]*)([^;]*);)");
    std::cmatch match;
    const std::string_view text = instruction.text;
    ASSERT_TRUE(std::regex_match(text.data(), text.data() + text.size(), match, form)) << text;
    EXPECT_EQ(match[3].str(), instruction.opcode);
    ASSERT_EQ(match[2].matched, instruction.guard.has_value());
    if (instruction.guard) {
      EXPECT_EQ(instruction.guard->negated, match[1].length() == 1);
      compare_register(instruction.guard->reg, match[2]);
    }
    const auto operands = split(match[4].str());
    ASSERT_EQ(operands.size(), instruction.operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) compare(instruction.operands[i], operands[i]);
  }

 private:
  void compare(const Operand& operand, const std::string& text) {
    SCOPED_TRACE(text);
    switch (operand.kind) {
      case Operand::Kind::reg: return compare_register(operand.reg, text);
      case Operand::Kind::immediate: return compare_number(operand, text);
      case Operand::Kind::special:
        EXPECT_EQ(operand.name, text);
        EXPECT_TRUE(std::regex_match(text, std::regex(R"(%n?(tid|ctaid)\.[xyz])")));
        return;
      case Operand::Kind::parameter:
      case Operand::Kind::function:
      case Operand::Kind::symbol: EXPECT_EQ(operand.name, text); return;
      case Operand::Kind::vector: return compare_parts(operand, split(inside(text)));
      case Operand::Kind::address: return compare_address(operand, inside(text));
      case Operand::Kind::label: return compare_label(operand, text);
      case Operand::Kind::sink: EXPECT_EQ(text, "_"); return;
      case Operand::Kind::pair: {
        const std::size_t bar = text.find('|');
        return compare_parts(operand, {text.substr(0, bar), text.substr(bar + 1)});
      }
    }
  }

  void compare_register(unsigned number, const std::string& text) {
    EXPECT_EQ(names_.try_emplace(number, text).first->second, text);
    static const std::map<std::string, Type> types = {{"%p", Type::pred}, {"%rs", Type::b16}, {"%r", Type::b32},
                                                      {"%rd", Type::b64}, {"%f", Type::f32},  {"%fd", Type::f64}};
    const auto type = types.find(text.substr(0, text.find_first_of("0123456789")));
    if (type != types.end()) {
      EXPECT_EQ(kernel_.registers.at(number), type->second);
    }
  }

  static void compare_number(const Operand& operand, const std::string& text) {
    const bool is_float = text.starts_with("0f") || text.starts_with("0d");
    EXPECT_EQ(operand.is_float, is_float);
    EXPECT_EQ(operand.is_double, text.starts_with("0d"));
    EXPECT_EQ(operand.bits, is_float                ? std::strtoull(text.c_str() + 2, nullptr, 16)
                            : text.starts_with('-') ? static_cast<std::uint64_t>(std::strtoll(text.c_str(), nullptr, 0))
                                                    : std::strtoull(text.c_str(), nullptr, 0));
  }

  void compare_parts(const Operand& operand, const std::vector<std::string>& texts) {
    ASSERT_EQ(operand.parts.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) compare(operand.parts[i], texts[i]);
  }

  /// "%rd1+-8", "%rd1,{%r1,%r2}"
  void compare_address(const Operand& operand, const std::string& text) {
    auto texts = split(text);
    if (texts.size() == 2) {
      const auto coordinates = split(inside(texts[1]));
      texts.pop_back();
      texts.insert(texts.end(), coordinates.begin(), coordinates.end());
    }
    const std::size_t plus = texts[0].find('+');
    EXPECT_EQ(operand.offset, plus == text.npos ? 0 : std::strtoll(texts[0].c_str() + plus + 1, nullptr, 10));
    texts[0] = texts[0].substr(0, plus);
    compare_parts(operand, texts);
  }

  void compare_label(const Operand& operand, const std::string& text) {
    const char* const place = labels_.at(text);
    ASSERT_LT(operand.target, kernel_.code.size());
    EXPECT_GT(kernel_.code[operand.target].text.data(), place);
    if (operand.target > 0) {
      EXPECT_LT(kernel_.code[operand.target - 1].text.data(), place);
    }
  }

  const Labels& labels_;
  const Kernel& kernel_;
  std::map<unsigned, std::string> names_;
};

/// What is in a kernel's text and in none of its instructions: blanks, braces, labels, directives.
void expect_nothing_left(std::string_view rest) {
  static const std::regex known(R"((\s|[{}]|\$\w+:|\.(reg|shared|local|pragma)\s[^;]*;|\.loc\s[^\n]*)*)");
  EXPECT_TRUE(std::regex_match(rest.begin(), rest.end(), known)) << rest;
}

class NvccOutput : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string_view(GRADRING_CUDA_MODULE).empty()) GTEST_SKIP() << "this build has no CUDA module";
    texts_ = tests::ptx_in(gradring::tests::built_file(GRADRING_CUDA_MODULE));
    ASSERT_FALSE(texts_.empty());
  }

  std::vector<std::string> texts_;
};

/// Each way in which nvcc compresses a fat binary, compared with the PTX that it writes to a file.
TEST_F(NvccOutput, IsReadInEachCompression) {
  if (!has_zstandard()) GTEST_SKIP() << "this build has no libzstd";
  const gradring::tests::TempFolder folder;
  const std::string source = folder.path() / "kernel.cu";
  std::ofstream(source) << "__global__ void add(float* sum) {\n"
                           "  for (int i = 0; i < 100; ++i) sum[threadIdx.x] += sum[i];\n"
                           "}\n";
  const auto nvcc = [&](const std::vector<std::string>& options) {
    std::vector<std::string> command = {GRADRING_NVCC, source, "-o", folder.path() / "out"};
    command.insert(command.end(), options.begin(), options.end());
    const auto end = gradring::tests::run_program({.command = command, .folder = folder.path(), .variables = {}});
    EXPECT_EQ(end.code, 0) << end.err;
    std::ifstream file(folder.path() / "out", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const auto body = [](std::string text) {  // nvcc embeds no comments and fewer blanks
    std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
    return text.substr(text.find(".visible.entry"));
  };
  const std::string expected = nvcc({"-ptx", "-arch=compute_90"});
  for (const char* mode : {"default", "size", "speed", "balance", "none"}) {
    SCOPED_TRACE(mode);
    const std::string binary =
        nvcc({"-fatbin", "-gencode=arch=compute_90,code=[sm_90,compute_90]", std::string("--compress-mode=") + mode});
    const auto texts = embedded_ptx(std::as_bytes(std::span(binary)));
    ASSERT_EQ(texts.size(), 1u);
    EXPECT_EQ(body(texts[0].text), body(expected));
    const auto code = embedded_code(std::as_bytes(std::span(binary)));
    ASSERT_FALSE(code.empty());
    for (const EmbeddedCode& each : code) EXPECT_EQ(each.elf[1], std::byte{'E'});
  }
}

TEST_F(NvccOutput, HasEachInstructionOnce) {
  for (const std::string& text : texts_) {
    const Module module(text);
    SCOPED_TRACE(module.files().at(1));
    EXPECT_EQ(module.kernel_names().size(), count(text, ".entry "));
    std::size_t instructions = 0;
    for (const auto name : module.kernel_names()) {
      const Kernel& kernel = *module.kernel(name);
      ASSERT_FALSE(kernel.code.empty());
      instructions += kernel.code.size();
      for (std::size_t i = 1; i < kernel.code.size(); ++i) {
        const std::string_view before = kernel.code[i - 1].text, text_here = kernel.code[i].text;
        const char* const end = before.data() + before.size();
        ASSERT_LE(end, text_here.data());
        expect_nothing_left({end, static_cast<std::size_t>(text_here.data() - end)});
      }
    }
    EXPECT_EQ(instructions, count_instructions(text));
  }
}

TEST_F(NvccOutput, IsReadAsItIsWritten) {
  for (const std::string& text : texts_) {
    const Module module(text);
    const Labels labels = labels_of(text, module);
    for (const auto name : module.kernel_names()) {
      const Kernel& kernel = *module.kernel(name);
      SecondReader reader(labels, kernel);
      for (const Instruction& instruction : kernel.code) {
        SCOPED_TRACE(instruction.text);
        reader.compare(instruction);
        if (testing::Test::HasFailure()) return;  // one says enough
      }
    }
  }
}

TEST_F(NvccOutput, NamesSourceLines) {
  std::size_t known = 0, all = 0;
  for (const std::string& text : texts_) {
    const Module module(text);
    for (const auto name : module.kernel_names())
      for (const Instruction& each : module.kernel(name)->code) {
        ++all;
        ASSERT_LT(each.called_from.file, module.files().size());
        if (each.source.line > 0) {
          ++known;
          ASSERT_FALSE(module.files().at(each.source.file).empty());
        }
      }
  }
  EXPECT_GT(known, all / 2);  // -lineinfo
}

}  // namespace
}  // namespace gradring::ptx
