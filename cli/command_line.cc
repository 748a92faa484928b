#include "halftone/cli/command_line.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "absl/flags/parse.h"

namespace halftone::cli {
namespace {

bool parsing = false, asked_for_help = false;

// --help, --helpfull, --helpmatch=..., --version.
bool AsksForHelp(std::string_view argument) {
  if (argument.empty() || argument[0] != '-') return false;
  argument.remove_prefix(std::min(argument.find_first_not_of('-'), argument.size()));
  return argument.substr(0, 4) == "help" || argument == "version";
}

// The flags library ends the process with status 1 for a wrong flag, as for --help.
void ChooseExitStatus() {
  if (!parsing) return;
  std::fflush(nullptr);
  std::_Exit(asked_for_help ? 0 : 2);
}

}  // namespace

std::vector<char*> ParseCommandLine(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);
  std::atexit(&ChooseExitStatus);
  asked_for_help = std::any_of(argv, argv + argc, &AsksForHelp);
  parsing = true;
  std::vector<char*> arguments = absl::ParseCommandLine(argc, argv);
  parsing = false;
  return arguments;
}

}  // namespace halftone::cli
