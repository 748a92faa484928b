#include "halftone/cli/command_line.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "halftone/cli/exit_status.h"
#include "halftone/core/status.h"

namespace halftone::cli {
namespace {

bool parsing = false, asked_for_help = false;

// How often parsing has set each list.
std::map<std::string, int>& ListCounts() {
  static auto* const counts = new std::map<std::string, int>;
  return *counts;
}

void RefuseListsGivenTwice() {
  for (const auto& [flag, count] : ListCounts()) {
    if (count < 2) continue;
    PrintMessage(
        program_invocation_short_name,
        Concat("--", flag, ": given ", count, " times; expected one list, --", flag, "=a,b"));
    std::exit(2);
  }
}

// --help, --helpfull, --helpmatch=..., --version.
bool AsksForHelp(std::string_view argument) {
  if (argument.empty() || argument[0] != '-') return false;
  argument.remove_prefix(std::min(argument.find_first_not_of('-'), argument.size()));
  return argument.substr(0, 4) == "help" || argument == "version";
}

// The library has no '-' in the names of flags: --write-policy is write_policy.
void PutUnderscores(char* argument) {
  if (std::strncmp(argument, "--", 2) != 0) return;
  char* const name = argument + 2;
  char* const end = name + std::strcspn(name, "=");
  std::string flag(name, end);
  std::replace(flag.begin(), flag.end(), '-', '_');
  if (absl::FindCommandLineFlag(flag) != nullptr) std::replace(name, end, '-', '_');
}

// The flags library ends the process with status 1 for a wrong flag, as for --help.
void ChooseExitStatus() {
  if (!parsing) return;
  std::fflush(nullptr);
  std::_Exit(asked_for_help ? 0 : 2);
}

}  // namespace

void NoteList(const std::string& flag) {
  if (parsing) ++ListCounts()[flag];  // else the default, when the program starts
}

std::vector<char*> ParseCommandLine(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);
  std::atexit(&ChooseExitStatus);
  asked_for_help = std::any_of(argv, argv + argc, &AsksForHelp);
  std::for_each(argv + std::min(argc, 1), argv + argc, &PutUnderscores);
  parsing = true;
  std::vector<char*> arguments = absl::ParseCommandLine(argc, argv);
  parsing = false;
  RefuseListsGivenTwice();
  return arguments;
}

}  // namespace halftone::cli
