// SPDX-License-Identifier: Apache-2.0
#include "train/options/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace gradring::train {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 26;  // where explanations begin

const Option& help_option() {
  static const Option option = {
      .name = "help", .letter = 'h', .value = {}, .help = "this text", .read = {}, .group = "General"};
  return option;
}

/// "-m, --module", "--lr F"
std::string signature(const Option& option) {
  const std::string letter = option.letter != 0 ? fmt::format("-{}, ", option.letter) : "";
  return fmt::format("{}--{}{}{}", letter, option.name, option.is_flag() ? "" : " ", option.value);
}

/// `text` behind `head`, broken between words; every line but the first is indented by `indent`.
std::string wrapped(std::string head, const std::string& text, std::size_t indent) {
  std::string result;
  std::istringstream words(text);
  bool at_start = true;
  for (std::string word; words >> word;) {
    if (!at_start && head.size() + 1 + word.size() > kWidth) {
      result += head + "\n";
      head.assign(indent, ' ');
      at_start = true;
    }
    head += (at_start ? "" : " ") + word;
    at_start = false;
  }
  return result + head + "\n";
}

std::string entry(const Option& option) {
  const std::string head = "  " + signature(option);
  if (head.size() + 2 > kColumn) return head + "\n" + wrapped(std::string(kColumn, ' '), option.help, kColumn);
  return wrapped(fmt::format("{:<{}}", head, kColumn), option.help, kColumn);
}

struct OptionGroup {
  std::string title;
  std::vector<const Option*> options;
};

/// In the order in which groups are named first; --help is in the last one.
std::vector<OptionGroup> groups_of(const CommandLine& line) {
  std::vector<OptionGroup> groups;
  const auto add = [&](const std::string& title, const Option& option) {
    auto group = std::ranges::find(groups, title, &OptionGroup::title);
    if (group == groups.end()) group = groups.insert(group, {.title = title, .options = {}});
    group->options.push_back(&option);
  };
  for (const Option& option : line.options) add(option.group.empty() ? "Options" : option.group, option);
  const bool is_grouped = groups.size() > 1 || (groups.size() == 1 && groups.front().title != "Options");
  add(is_grouped ? "General" : "Options", help_option());
  return groups;
}

/// A paragraph of notes, or lines that are kept as they are.
struct Paragraph {
  std::string text;
  bool is_kept = false;
};

std::vector<Paragraph> paragraphs_of(const std::string& notes) {
  std::vector<Paragraph> all;
  bool open = false;
  std::istringstream lines(notes);
  for (std::string line; std::getline(lines, line);) {
    const bool is_kept = line.starts_with(' ');
    if (line.empty()) {
      open = false;
      continue;
    }
    if (!open || all.back().is_kept != is_kept) all.push_back({.text = {}, .is_kept = is_kept});
    all.back().text += line + (is_kept ? "\n" : " ");
    open = true;
  }
  return all;
}

/// Text for troff: a backslash, a hyphen and a control character at the start of a line are not taken as such.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) result += "\\&";
    result += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  return result;
}

}  // namespace

std::string help_of(const CommandLine& line) {
  std::string text = wrapped("", line.command + ": " + line.purpose, 0);
  if (!line.usage.empty()) text += "\nUsage:\n";
  for (const std::string& usage : line.usage) text += wrapped("  ", usage, 6);
  for (const OptionGroup& group : groups_of(line)) {
    text += fmt::format("\n{}:\n", group.title);
    for (const Option* option : group.options) text += entry(*option);
  }
  bool was_kept = false;
  for (const Paragraph& paragraph : paragraphs_of(line.notes)) {
    text += (paragraph.is_kept && !was_kept && text.ends_with(":\n") ? "" : "\n") +
            (paragraph.is_kept ? paragraph.text : wrapped("", paragraph.text, 0));
    was_kept = paragraph.is_kept;
  }
  return text;
}

std::string manual_page(const CommandLine& line, std::string_view version) {
  std::string name = line.command;
  std::ranges::replace(name, ' ', '-');
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string page = fmt::format(".TH {} 1 \"\" \"gradring {}\" \"gradring manual\"\n.SH NAME\n{} \\- {}\n",
                                 escaped(title), version, escaped(name), escaped(line.purpose));
  if (!line.usage.empty()) page += ".SH SYNOPSIS\n.nf\n";
  for (const std::string& usage : line.usage) page += escaped(usage) + "\n";
  if (!line.usage.empty()) page += ".fi\n";
  page += ".SH OPTIONS\n";
  for (const OptionGroup& group : groups_of(line)) {
    page += fmt::format(".SS {}\n", escaped(group.title));
    for (const Option* option : group.options)
      page += fmt::format(".TP\n.B {}\n{}\n", escaped(signature(*option)), escaped(option->help));
  }
  if (!line.notes.empty()) page += ".SH NOTES\n";
  for (const Paragraph& paragraph : paragraphs_of(line.notes))
    page += paragraph.is_kept ? ".nf\n" + escaped(paragraph.text) + ".fi\n" : ".PP\n" + escaped(paragraph.text) + "\n";
  return page;
}

}  // namespace gradring::train
