// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/module.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "kernels/simulated_gpu/ptx/kernel_reader.h"
#include "kernels/simulated_gpu/ptx/lexer.h"

namespace gradring::ptx {

namespace {

struct TypeRow {
  std::string_view name;
  std::size_t bytes = 0;
};

/// By Type.
constexpr TypeRow kTypes[] = {{"none", 0}, {"pred", 0}, {"b8", 1},  {"b16", 2},  {"b32", 4}, {"b64", 8},
                              {"u8", 1},   {"u16", 2},  {"u32", 4}, {"u64", 8},  {"s8", 1},  {"s16", 2},
                              {"s32", 4},  {"s64", 8},  {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}};
static_assert(std::size(kTypes) == static_cast<std::size_t>(Type::f64) + 1);

/// The rest of a directive, up to its body or the semicolon in place of one.
void skip_head(Lexer& lexer) {
  while (!lexer.peek().is("{") && !lexer.peek().is(";")) {
    if (lexer.peek().kind == Token::Kind::end) lexer.fail("'{' was expected before the end");
    lexer.next();
  }
}

}  // namespace

std::string_view name_of(Type type) { return kTypes[static_cast<std::size_t>(type)].name; }

Type type_named(std::string_view name) {
  const auto row = std::ranges::find(kTypes, name, &TypeRow::name);
  return row == std::end(kTypes) ? Type::none : static_cast<Type>(row - kTypes);
}

std::size_t bytes_of(Type type) { return kTypes[static_cast<std::size_t>(type)].bytes; }

bool Instruction::has(std::string_view word) const { return std::ranges::find(words, word) != words.end(); }

struct Module::Parts {
  /// A kernel is read when it is asked for.
  struct Entry {
    std::string_view name;
    std::size_t begin = 0, end = 0;
    std::mutex mutex;
    std::optional<Kernel> kernel;
  };

  explicit Parts(std::string module_text) : text(std::move(module_text)) {
    Lexer lexer(text, 0, text.size());
    while (lexer.peek().kind != Token::Kind::end) directive(lexer);
  }

  std::string text;
  std::string_view version;
  std::string_view target;
  std::vector<std::string_view> files = std::vector<std::string_view>(1);
  ModuleVariables variables;
  std::vector<ModuleVariable> in_global_memory;
  std::unordered_map<std::string_view, std::size_t> index_of_variable;
  bool is_extern = false;     // what comes next
  std::deque<Entry> entries;  // a mutex does not move
  std::unordered_map<std::string_view, Entry*> by_name;

  void directive(Lexer& lexer) {
    const Token word = lexer.peek();
    if (lexer.accept(".version")) {
      version = lexer.expect(Token::Kind::number, "a version").text;
    } else if (lexer.accept(".target")) {
      target = lexer.expect(Token::Kind::identifier, "a target").text;
      while (lexer.accept(",")) lexer.expect(Token::Kind::identifier, "an option of a target");
    } else if (lexer.accept(".address_size")) {
      if (const std::uint64_t bits = lexer.expect_integer(); bits != 64)
        lexer.fail(joined("addresses have ", bits, " bits; 64 are known here"));
    } else if (lexer.accept(".file")) {
      read_file(lexer);
    } else if (lexer.accept(".section")) {  // of debuggers
      lexer.next();
      if (!lexer.peek().is("{")) lexer.expect("{");
      lexer.skip_braces();
    } else if (lexer.accept(".entry")) {
      read_entry(lexer);
    } else if (lexer.accept(".func")) {
      read_function(lexer);
    } else if (lexer.accept(".shared")) {
      read_shared(lexer);
    } else if (lexer.accept(".global")) {
      read_global(lexer, false);
    } else if (lexer.accept(".const")) {
      read_global(lexer, true);
    } else if (lexer.accept(".extern")) {
      is_extern = true;
      return;
    } else if (!lexer.accept(".visible") && !lexer.accept(".weak") && !lexer.accept(".common")) {
      lexer.fail(joined("directive '", word.text, "' of a module is not known here"));
    }
    is_extern = false;
  }

  void read_file(Lexer& lexer) {
    const std::uint64_t number = lexer.expect_integer();
    constexpr std::uint64_t kMost = 1 << 16;
    if (number >= kMost) lexer.fail(joined("the number of a file is ", number, ", not below ", kMost));
    const std::string_view path = lexer.expect(Token::Kind::string, "a path").text;
    while (lexer.accept(",")) lexer.expect_integer();  // time and size
    if (files.size() <= number) files.resize(number + 1);
    files[number] = path.substr(1, path.size() - 2);
  }

  void read_entry(Lexer& lexer) {
    const std::size_t begin = lexer.begin();
    const std::string_view name = lexer.expect(Token::Kind::identifier, "the name of a kernel").text;
    skip_head(lexer);
    if (lexer.accept(";")) return;  // declared, and defined elsewhere
    lexer.skip_braces();
    Entry& entry = entries.emplace_back();
    entry.name = name;
    entry.begin = begin;
    entry.end = lexer.end_of_last();
    if (!by_name.try_emplace(name, &entry).second) lexer.fail_at(name, joined("kernel ", name, " is defined twice"));
  }

  /// A function is declared any number of times, and defined at most once.
  void read_function(Lexer& lexer) {
    FunctionText function{.begin = lexer.begin(), .number = variables.functions.size()};
    if (lexer.accept("(")) {
      while (!lexer.peek().is(")") && lexer.peek().kind != Token::Kind::end) lexer.next();
      lexer.expect(")");
    }
    const std::string_view name = lexer.expect(Token::Kind::identifier, "the name of a function").text;
    skip_head(lexer);
    function.is_defined = !lexer.accept(";");
    if (function.is_defined) lexer.skip_braces();
    function.end = lexer.end_of_last();
    const auto [known, is_new] = variables.functions.try_emplace(name, function);
    if (is_new || !function.is_defined) return;
    if (known->second.is_defined) lexer.fail_at(name, joined("function ", name, " is defined twice"));
    function.number = known->second.number;
    known->second = function;
  }

  void read_shared(Lexer& lexer) {
    const Declaration declaration = read_declaration(lexer);
    declare(lexer, declaration.name);
    variables.shared.emplace(declaration.name, declaration);
    lexer.expect(";");
  }

  void read_global(Lexer& lexer, bool is_constant) {
    ModuleVariable variable = read_module_variable(lexer);
    variable.is_constant = is_constant;
    variable.is_extern = is_extern;
    declare(lexer, variable.name);
    for (const ModuleVariable::Reference& reference : variable.references)
      variables.initial_functions.push_back(reference.name);
    index_of_variable.emplace(variable.name, in_global_memory.size());
    in_global_memory.push_back(std::move(variable));
  }

  void declare(Lexer& lexer, std::string_view name) {
    if (!variables.names.insert(name).second) lexer.fail_at(name, joined("variable ", name, " is declared twice"));
  }
};

Module::Module(std::string text) : parts_(std::make_unique<Parts>(std::move(text))) {}
Module::~Module() = default;
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&&) noexcept = default;

std::string_view Module::version() const { return parts_->version; }

std::string_view Module::target() const { return parts_->target; }

const std::vector<std::string_view>& Module::files() const { return parts_->files; }

std::uint64_t Module::function_address(std::string_view name) const {
  const auto found = parts_->variables.functions.find(name);
  return found == parts_->variables.functions.end() ? 0 : address_of_function(found->second.number);
}

std::vector<std::string_view> Module::kernel_names() const {
  std::vector<std::string_view> names;
  for (const Parts::Entry& entry : parts_->entries) names.push_back(entry.name);
  return names;
}

std::vector<unsigned> Module::lines_of(const Kernel& kernel) const {
  std::vector<unsigned> lines;
  const char* at = parts_->text.data();
  unsigned line = 1;
  for (const Instruction& instruction : kernel.code) {
    const char* const text = instruction.text.data();
    if (text < at) {  // a function that is defined behind its kernel
      at = parts_->text.data();
      line = 1;
    }
    line += static_cast<unsigned>(std::count(at, text, '\n'));
    at = text;
    lines.push_back(line);
  }
  return lines;
}

const std::vector<ModuleVariable>& Module::variables() const { return parts_->in_global_memory; }

std::optional<std::size_t> Module::variable_named(std::string_view name) const {
  const auto found = parts_->index_of_variable.find(name);
  return found == parts_->index_of_variable.end() ? std::nullopt : std::optional(found->second);
}

const Kernel* Module::kernel(std::string_view name) const {
  const auto found = parts_->by_name.find(name);
  if (found == parts_->by_name.end()) return nullptr;
  Parts::Entry& entry = *found->second;
  const std::scoped_lock lock(entry.mutex);
  if (!entry.kernel) entry.kernel = read_kernel(parts_->text, entry.begin, entry.end, parts_->variables);
  return &*entry.kernel;
}

}  // namespace gradring::ptx
