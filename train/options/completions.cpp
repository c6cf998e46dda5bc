// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "kernels/runtime/nearest_name.h"
#include "train/options/help.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

/// The words of "fp32|fp16"; nothing for a placeholder such as "N" or "none|auto|N", whose capitals stand for anything.
std::string choices_of(const Option& option) {
  std::string words;
  std::string word;
  for (const char c : option.value + "|") {
    if (c != '|') {
      word += c;
      continue;
    }
    const bool is_literal = !word.empty() && std::ranges::none_of(word, [](unsigned char letter) {
      return std::isupper(letter) || (!std::isalnum(letter) && letter != '-' && letter != '_');
    });
    if (is_literal) words += (words.empty() ? "" : " ") + word;
    word.clear();
  }
  return option.value.find('|') == std::string::npos ? "" : words;
}

bool takes_path(const Option& option) {
  constexpr std::string_view kPaths[] = {"PATH", "DIR", "FILE"};
  return std::ranges::any_of(kPaths, [&](std::string_view path) { return option.value.ends_with(path); }) ||
         option.value.starts_with("FILE.");
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
  return names + "--help";
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
      const std::string action = !choices.empty() ? words_of(choices) : std::string(takes_path(option) ? files : ":");
      values += fmt::format("    {}) {}; return ;;\n", pattern, action);
    }
    names += fmt::format("    {}) {}{} ;;\n", single_quoted(path_of(line)), words_of(names_of(line, commands)),
                         line.takes_words || line.ends_at_word ? fmt::format("; {}", files) : "");
  }
  return fmt::format("  case \"$place:$previous\" in\n{}  esac\n  case \"$place\" in\n{}  esac\n", values, names);
}

/// `gradring launch ... train` continues with train's options.
std::string path_arms(std::span<const CommandLine> commands) {
  std::string arms;
  for (const CommandLine& line : commands)
    for (const CommandLine* child : children_of(line, commands))
      arms += fmt::format("      {}) place={} ;;\n", single_quoted(path_of(line) + " " + last_word(*child)),
                          single_quoted(path_of(*child)));
  return arms + "      'launch train') place='train' ;;\n      'launch bench') place='bench' ;;\n";
}

std::string bash(std::span<const CommandLine> commands) {
  const auto words = [](const std::string& list) {
    return fmt::format("COMPREPLY+=($(compgen -W {} -- \"$current\"))", single_quoted(list));
  };
  return fmt::format(
      R"(# bash completion for gradring: gradring completions bash > ~/.local/share/bash-completion/completions/gradring
_gradring() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} place='' i
  COMPREPLY=()
  [[ ${{COMP_WORDS[0]##*/}} == gradrun ]] && place='launch'
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place ${{COMP_WORDS[i]}}" in
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
  local previous=${{words[CURRENT - 1]}} place='' word
  [[ ${{words[1]:t}} == gradrun ]] && place='launch'
  for word in ${{words[2,CURRENT - 1]}}; do
    case "$place $word" in
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
function __gradring_place
  set -l words (commandline -opc)
  set -l place ''
  string match -q '*gradrun' -- $words[1]; and set place launch
  for word in $words[2..]
    switch "$place $word"
)";
  for (const CommandLine& line : commands)
    for (const CommandLine* child : children_of(line, commands))
      script += fmt::format("      case {}\n        set place {}\n",
                            fish_quoted(path_of(line) + " " + last_word(*child)), fish_quoted(path_of(*child)));
  script += R"(      case 'launch train'
        set place train
      case 'launch bench'
        set place bench
    end
  end
  test "$place" = "$argv"
end
)";
  for (const CommandLine& line : commands) {
    const std::string at = fish_quoted("__gradring_place " + path_of(line));
    const std::string start = "complete -c gradring -n " + at;
    if (!line.takes_words && !line.ends_at_word) script += start + " -f\n";
    for (const CommandLine* child : children_of(line, commands))
      script += fmt::format("{} -a {} -d {}\n", start, last_word(*child), fish_quoted(child->purpose));
    for (const Option& option : line.options) {
      const std::string letter = option.letter != 0 ? fmt::format(" -s {}", option.letter) : "";
      const std::string choices = choices_of(option);
      const std::string value = option.is_flag()     ? ""
                                : !choices.empty()   ? " -x -a " + fish_quoted(choices)
                                : takes_path(option) ? " -r -F"
                                                     : " -x";
      script += fmt::format("{}{} -l {}{} -d {}\n", start, letter, option.name, value, fish_quoted(option.help));
    }
  }
  return script + "complete -c gradrun -w 'gradring launch'\n";
}

}  // namespace

std::string completions(std::string_view shell, std::span<const CommandLine> commands) {
  constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};
  if (std::ranges::find(kShells, shell) == std::end(kShells))
    throw UsageError(
        fmt::format("unknown shell '{}': must be bash, zsh or fish.{}", shell, did_you_mean(shell, kShells)));
  return shell == "bash" ? bash(commands) : shell == "zsh" ? zsh(commands) : fish(commands);
}

}  // namespace gradring::train
