// Converts a trained model (ONNX, a graph file with its values, or a folder that a program dumped)
// for inference in 16 bit, or takes the casts of such a conversion out again. Exit status: 0, 1 a file
// cannot be read or written or the model cannot be converted, 2 wrong options.
#include <cstdio>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/graph/nn/model_file.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/graph/runtime/convert_model.h"
#include "halftone/tools/support/graph_source.h"

ABSL_FLAG(std::string, amp, "",
          "f16 or bf16; empty: the dtype of --policy, or what --device prefers");
ABSL_FLAG(std::string, policy, "", "policy file; empty: what operators say");
ABSL_FLAG(
    std::vector<std::string>, deny, {},
    "operators and patterns over names of nodes to keep f32, besides those of the policy, with commas")
    .OnUpdate([] { halftone::cli::NoteList("deny"); });
ABSL_FLAG(bool, cast_parameters, false, "store what 16-bit nodes alone read in 16 bit");
ABSL_FLAG(bool, low_outputs, false, "leave outputs in 16 bit instead of the dtype they had");
ABSL_FLAG(bool, remove_casts, false, "make a converted model f32 again");
ABSL_FLAG(
    std::string, variables, "",
    "file of state (checkpoint, .npz, .safetensors) with the values of variables; empty: those of the "
    "folder or of the model");
ABSL_FLAG(std::string, device, "cpu", "where it is to run: cpu, reference, cuda or cuda:N");

namespace halftone {
namespace {

using cli::WrongOption;

absl::StatusOr<amp::Policy> ChosenPolicy() {
  amp::Policy policy;
  if (const std::string path = absl::GetFlag(FLAGS_policy); !path.empty()) {
    HT_ASSIGN_OR_RETURN(policy, amp::Policy::ReadFile(path));
  }
  if (const std::string name = absl::GetFlag(FLAGS_amp); !name.empty()) {
    policy.dtype = ParseDType(name);
    if (!policy.dtype.has_value() || !IsLow(*policy.dtype)) {
      return WrongOption("--amp=", name, ": expected f16 or bf16");
    }
  }
  for (const std::string& entry : absl::GetFlag(FLAGS_deny)) policy.deny.push_back(entry);
  if (absl::GetFlag(FLAGS_low_outputs)) policy.low_outputs = true;
  return policy;
}

absl::StatusOr<ir::Model> Convert(const ir::Model& model, const Device& device) {
  if (absl::GetFlag(FLAGS_remove_casts)) return amp::RemoveAmpCasts(model);
  HT_ASSIGN_OR_RETURN(const amp::Policy policy, ChosenPolicy());
  return amp::ConvertModel(
      model, policy, {.cast_parameters = absl::GetFlag(FLAGS_cast_parameters), .device = device});
}

absl::Status CheckOptions() {
  if (!absl::GetFlag(FLAGS_remove_casts)) return absl::OkStatus();
  const bool converts = !absl::GetFlag(FLAGS_amp).empty() || !absl::GetFlag(FLAGS_policy).empty() ||
                        !absl::GetFlag(FLAGS_deny).empty() ||
                        absl::GetFlag(FLAGS_cast_parameters) || absl::GetFlag(FLAGS_low_outputs);
  return converts ? WrongOption("--remove_casts: expected no option of a conversion beside it")
                  : absl::OkStatus();
}

absl::Status Run(const std::vector<char*>& arguments) {
  if (arguments.size() != 3) {
    return WrongOption("expected IN and OUT; halftone_convert model.onnx model_f16.onnx --amp f16");
  }
  HT_RETURN_IF_ERROR(CheckOptions());
  const std::string in = arguments[1], out = arguments[2];
  const std::string name = absl::GetFlag(FLAGS_device);
  const absl::StatusOr<Device> device = ParseDevice(name);
  if (!device.ok()) {
    return WrongOption("--device=", name, ": expected cpu, reference, cuda or cuda:N");
  }
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Target> target, runtime::TargetOf(*device));
  HT_ASSIGN_OR_RETURN(const ir::Model model,
                      tools::LoadModel(in, "", absl::GetFlag(FLAGS_variables), *target));
  for (const std::string& note : model.notes) cli::PrintMessage("note", note);
  const absl::StatusOr<ir::Model> converted = Convert(model, *device);
  HT_RETURN_IF_ERROR(Annotate(converted.status(), in + ": "));
  HT_RETURN_IF_ERROR(nn::WriteModel(out, *converted));
  for (const std::string& note : converted->notes) std::printf("%s\n", note.c_str());
  return absl::OkStatus();
}

int Main(const std::vector<char*>& arguments) {
  const absl::Status status = Run(arguments);
  if (!status.ok()) cli::PrintMessage("halftone_convert", Message(status));
  return cli::ExitStatus(status);
}

}  // namespace
}  // namespace halftone

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "halftone_convert IN OUT --amp f16|bf16 [--cast_parameters] [--policy FILE] [--deny a,b] "
      "[--low_outputs] or --remove_casts: a trained model for inference in 16 bit; OUT: a folder, or .onnx");
  return halftone::cli::WithinMemory("halftone_convert", [argc, argv] {
    return halftone::cli::FinishOutput("halftone_convert",
                                       halftone::Main(halftone::cli::ParseCommandLine(argc, argv)));
  });
}
