#include "halftone/examples/support/setup.h"

#include "absl/flags/usage.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/core/cpu_count.h"
#include "halftone/core/threads.h"
#include "halftone/examples/support/device_choice.h"

namespace halftone::example {

void Setup::Apply(nn::Graph& graph) const {
  graph.to(device);
  graph.config.enable_amp(lowers, {.dtype = low});
}

absl::StatusOr<Setup> SetUp(const std::string& amp, const std::string& device, int threads) {
  Setup setup;
  setup.lowers = amp != "off";
  setup.low = amp::ParsePolicyDType(amp);
  if (setup.lowers && amp != "auto" && !setup.low) {
    return cli::WrongOption("--amp: expected off, bf16, f16, f8 or auto");
  }
  if (const absl::Status status = CheckNumThreads(threads); !status.ok()) {
    return cli::WrongOption("--threads: ", Message(status));
  }
  const auto choice = ChooseDevice(device);
  if (!choice.ok()) return cli::WrongOption("--device: ", Message(choice.status()));
  setup.device = choice->device;
  if (!choice->note.empty()) cli::PrintMessage("note", choice->note);
  if (threads > 0) SetNumThreads(threads);
  if (const std::string note = NoteOnThreads(threads); !note.empty()) {
    cli::PrintMessage("note", note);
  }
  return setup;
}

int RunProgram(const char* name, const char* usage, int argc, char** argv, absl::Status (*run)()) {
  absl::SetProgramUsageMessage(usage);
  const std::vector<char*> arguments = cli::ParseCommandLine(argc, argv);
  const absl::Status status =
      arguments.size() > 1 ? cli::WrongOption(arguments[1], ": expected flags only") : run();
  if (!status.ok()) cli::PrintMessage(name, Message(status));
  return cli::FinishOutput(name, cli::ExitStatus(status));
}

}  // namespace halftone::example
