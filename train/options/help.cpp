// SPDX-License-Identifier: Apache-2.0
#include "train/options/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>

#include "kernels/base/nearest_name.h"
#include "train/options/path_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 26;  // where explanations begin

/// The options of every command.
const std::vector<Option>& common_options() {
  static const std::vector<Option> all = {color_option(), bare_option("help,h", "", "this text")};
  return all;
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

/// A line that is too long, broken after choices.
std::string broken_at_choices(std::string line) {
  for (std::size_t begin = 0; line.size() - begin > kWidth;) {
    const std::size_t bar = line.rfind('|', begin + kWidth - 1);
    if (bar == std::string::npos || bar < begin) break;
    line.insert(bar + 1, "\n      ");
    begin = bar + 2;
  }
  return line;
}

std::string entry(const Option& option) {
  const std::string head = broken_at_choices("  " + signature(option));
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
  for (const Option& option : common_options()) add(is_grouped ? "General" : "Options", option);
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

/// The words of "fp32|fp16"; nothing for a placeholder such as "N" or "none|auto|N", whose capitals stand for anything.
std::string choices_of(const Option& option) {
  if (option.value.find('|') == std::string::npos) return {};
  const auto is_literal = [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '-' || c == '_'; };
  std::string literals;
  std::istringstream words(option.value);
  for (std::string word; std::getline(words, word, '|');)
    if (!word.empty() && std::ranges::all_of(word, is_literal)) literals += (literals.empty() ? "" : " ") + word;
  return literals;
}

/// "bench step" of "gradring bench step"; empty for the program itself.
std::string path_of(const CommandLine& line) {
  const auto blank = line.command.find(' ');
  return blank == std::string::npos ? "" : line.command.substr(blank + 1);
}

std::vector<const CommandLine*> children_of(const CommandLine& parent, std::span<const CommandLine> commands) {
  std::vector<const CommandLine*> children;
  for (const CommandLine& line : commands)
    if (line.command.size() > parent.command.size() &&
        line.command.substr(0, line.command.rfind(' ')) == parent.command)
      children.push_back(&line);
  return children;
}

std::string last_word(const CommandLine& line) { return line.command.substr(line.command.rfind(' ') + 1); }

/// 'text' for a POSIX shell.
std::string single_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// 'text' for fish.
std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
  return result + "'";
}

std::string names_of(const CommandLine& line, std::span<const CommandLine> commands) {
  std::string names;
  for (const CommandLine* child : children_of(line, commands)) names += last_word(*child) + " ";
  for (const Option& option : line.options) names += "--" + option.name + " ";
  return names + "--color --help";
}

/// The case arms that bash and zsh share: from the words so far to a command, and from a command to what may follow.
/// `words_of` and `files` are the shell's statements for a list of words and for paths.
std::string case_arms(std::span<const CommandLine> commands, const auto& words_of, std::string_view files) {
  std::string values, names;
  for (const CommandLine& line : commands) {
    for (const Option& option : line.options) {
      if (option.is_flag()) continue;
      std::string pattern = single_quoted(path_of(line) + ":--" + option.name);
      if (option.letter != 0) pattern += "|" + single_quoted(path_of(line) + ":-" + option.letter);
      const std::string choices = choices_of(option);
      const std::string action =
          !choices.empty() ? words_of(choices) : std::string(takes_path(option.value) ? files : ":");
      values += fmt::format("    {}) {}; return ;;\n", pattern, action);
    }
    names += fmt::format("    {}) {}{} ;;\n", single_quoted(path_of(line)), words_of(names_of(line, commands)),
                         line.takes_words || line.ends_at_word ? fmt::format("; {}", files) : "");
  }
  return fmt::format("  case \"$subcommand:$previous\" in\n{}  esac\n  case \"$subcommand\" in\n{}  esac\n", values,
                     names);
}

/// `gradring launch ... train` continues with train's options.
std::string path_arms(std::span<const CommandLine> commands) {
  std::string arms;
  for (const CommandLine& line : commands)
    for (const CommandLine* child : children_of(line, commands))
      arms += fmt::format("      {}) subcommand={} ;;\n", single_quoted(path_of(line) + " " + last_word(*child)),
                          single_quoted(path_of(*child)));
  return arms + "      'launch train') subcommand='train' ;;\n      'launch bench') subcommand='bench' ;;\n";
}

std::string bash(std::span<const CommandLine> commands) {
  const auto words = [](const std::string& list) {
    return fmt::format("COMPREPLY+=($(compgen -W {} -- \"$current\"))", single_quoted(list));
  };
  return fmt::format(
      R"(# bash completion for gradring: gradring completions bash > ~/.local/share/bash-completion/completions/gradring
_gradring() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} subcommand='' i
  COMPREPLY=()
  [[ ${{COMP_WORDS[0]##*/}} == gradrun ]] && subcommand='launch'
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$subcommand ${{COMP_WORDS[i]}}" in
{}    esac
  done
{}}}
complete -o filenames -F _gradring gradring gradrun
)",
      path_arms(commands), case_arms(commands, words, "COMPREPLY+=($(compgen -f -- \"$current\"))"));
}

std::string zsh(std::span<const CommandLine> commands) {
  const auto list_words = [](const std::string& list) { return fmt::format("compadd -- {}", list); };
  return fmt::format(
      R"(#compdef gradring gradrun
# zsh completion for gradring: gradring completions zsh > "${{fpath[1]}}/_gradring"
_gradring() {{
  local previous=${{words[CURRENT - 1]}} subcommand='' word
  [[ ${{words[1]:t}} == gradrun ]] && subcommand='launch'
  for word in ${{words[2,CURRENT - 1]}}; do
    case "$subcommand $word" in
{}    esac
  done
{}}}
_gradring "$@"
)",
      path_arms(commands), case_arms(commands, list_words, "_files"));
}

std::string fish(std::span<const CommandLine> commands) {
  std::string script =
      R"(# fish completion for gradring: gradring completions fish > ~/.config/fish/completions/gradring.fish
function __gradring_subcommand
  set -l words (commandline -opc)
  set -l subcommand ''
  string match -q '*gradrun' -- $words[1]; and set subcommand launch
  for word in $words[2..]
    switch "$subcommand $word"
)";
  for (const CommandLine& line : commands)
    for (const CommandLine* child : children_of(line, commands))
      script += fmt::format("      case {}\n        set subcommand {}\n",
                            fish_quoted(path_of(line) + " " + last_word(*child)), fish_quoted(path_of(*child)));
  script += R"(      case 'launch train'
        set subcommand train
      case 'launch bench'
        set subcommand bench
    end
  end
  test "$subcommand" = "$argv"
end
)";
  for (const CommandLine& line : commands) {
    const std::string at = fish_quoted("__gradring_subcommand " + path_of(line));
    const std::string start = "complete -c gradring -n " + at;
    if (!line.takes_words && !line.ends_at_word) script += start + " -f\n";
    for (const CommandLine* child : children_of(line, commands))
      script += fmt::format("{} -a {} -d {}\n", start, last_word(*child), fish_quoted(child->purpose));
    for (const Option& option : line.options) {
      const std::string letter = option.letter != 0 ? fmt::format(" -s {}", option.letter) : "";
      const std::string choices = choices_of(option);
      const std::string value = option.is_flag()           ? ""
                                : !choices.empty()         ? " -x -a " + fish_quoted(choices)
                                : takes_path(option.value) ? " -r -F"
                                                           : " -x";
      script += fmt::format("{}{} -l {}{} -d {}\n", start, letter, option.name, value, fish_quoted(option.help));
    }
  }
  return script + "complete -c gradrun -w 'gradring launch'\n";
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

std::string completions(std::string_view shell, std::span<const CommandLine> commands) {
  constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};
  if (std::ranges::find(kShells, shell) == std::end(kShells))
    throw UsageError(
        fmt::format("unknown shell '{}': must be bash, zsh or fish.{}", shell, did_you_mean(shell, kShells)));
  return shell == "bash" ? bash(commands) : shell == "zsh" ? zsh(commands) : fish(commands);
}

}  // namespace gradring::train
