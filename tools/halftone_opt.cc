// Runs passes on a graph file (text or protobuf form) or an ONNX model and prints the result as lossless text. Exit
// status: 0, 1 the file cannot be read or a pass fails, 2 wrong options.
#include <cstdio>
#include <memory>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/graph/ir/op_catalogue.h"
#include "halftone/graph/ir/proto.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/onnx/rules.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/pipeline.h"
#include "halftone/tools/support/graph_source.h"

ABSL_FLAG(std::vector<std::string>, passes, {}, "passes to run, in this order, each once")
    .OnUpdate([] { halftone::cli::NoteList("passes"); });
ABSL_FLAG(bool, pipeline, false, "run the whole pipeline instead, as compiling does");
ABSL_FLAG(std::string, target, "cpu-avx512bf16",
          "device that passes work for: cpu-scalar, cpu-avx2, cpu-avx512, "
          "cpu-avx512bf16 (both also with -nhwc), reference or cuda-sm90");
ABSL_FLAG(std::string, output, "", "file for the result, .txt or .pb; empty: standard output");
ABSL_FLAG(std::string, dump, "",
          "folder for the text of the graph after each pass that changes it");
ABSL_FLAG(bool, stats, false, "print time and statistics of each pass, on standard error");
ABSL_FLAG(bool, list, false, "print the names of all passes, in the order of the pipeline");
ABSL_FLAG(bool, operators, false, "print what every operator is: docs/operators.md");
ABSL_FLAG(bool, onnx, false, "print which operators of ONNX are covered: docs/onnx.md");

namespace halftone {
namespace {

int Fail(int code, const std::string& message) {
  cli::PrintMessage("halftone_opt", message);
  return code;
}

absl::Status AddPasses(passes::PassManager& manager) {
  for (const std::string& name : absl::GetFlag(FLAGS_passes)) {
    HT_ASSIGN_OR_RETURN(std::unique_ptr<passes::Pass> pass, passes::MakePass(name));
    manager.Add(std::move(pass));
  }
  return absl::OkStatus();
}

// The passes of `manager` alone.
absl::Status RunPasses(passes::PassManager& manager, ir::Graph& graph, const ir::Target& target,
                       runtime::PassReport* report) {
  const kernels::ReferenceEvaluator evaluator;
  passes::PassContext context;
  context.target = &target;
  context.evaluator = &evaluator;
  const absl::Status status = manager.Run(graph, context);
  *report = {context.notes, context.unmatched_entries, manager.Summary()};
  return status;
}

absl::Status Write(const ir::Graph& graph, const std::string& path) {
  if (!path.empty()) return ir::WriteGraphFile(graph, path);
  std::fputs(ir::Print(graph, ir::TextOptions::Lossless()).c_str(), stdout);
  return absl::OkStatus();
}

int Main(const std::vector<char*>& arguments) {
  if (absl::GetFlag(FLAGS_list)) {
    for (const std::string& name : passes::PassNames()) std::printf("%s\n", name.c_str());
    return 0;
  }
  if (absl::GetFlag(FLAGS_operators)) {
    std::fputs(ir::Catalogue(ir::OpRegistry::Global()).c_str(), stdout);
    return 0;
  }
  if (absl::GetFlag(FLAGS_onnx)) {
    std::fputs(onnx::CoverageText().c_str(), stdout);
    return 0;
  }
  if (arguments.size() != 2) {
    return Fail(2, "expected one FILE; halftone_opt FILE --passes=a,b or --pipeline");
  }
  if (absl::GetFlag(FLAGS_pipeline) != absl::GetFlag(FLAGS_passes).empty()) {
    return Fail(2, "expected either --passes=a,b or --pipeline");
  }
  passes::PassManagerOptions options;
  options.dump_dir = absl::GetFlag(FLAGS_dump);
  options.check_changed = true;
  passes::PassManager manager(options);
  const absl::Status added = AddPasses(manager);
  if (!added.ok()) return Fail(2, "--passes: " + Message(added));
  const auto target = kernels::FindFixedTarget(absl::GetFlag(FLAGS_target));
  if (!target.ok()) return Fail(2, "--target: " + Message(target.status()));

  const auto model = tools::ReadGraphOrModel(arguments[1]);
  if (!model.ok()) return Fail(cli::ExitStatus(model.status()), Message(model.status()));
  for (const std::string& note : model->notes) cli::PrintMessage("note", note);
  const std::unique_ptr<ir::Graph>* graph = &model->graph;
  runtime::PassReport report;
  absl::Status status = absl::GetFlag(FLAGS_pipeline)
                            ? runtime::Lower(**graph, **target, options, &report)
                            : RunPasses(manager, **graph, **target, &report);
  // Also after a failure: it shows how far the passes came.
  if (absl::GetFlag(FLAGS_stats)) std::fputs(report.summary.c_str(), stderr);
  for (const std::string& note : report.notes) cli::PrintMessage("note", note);
  for (const auto& [entry, note] : report.unmatched_entries) cli::PrintMessage("note", note);
  if (status.ok()) status = Write(**graph, absl::GetFlag(FLAGS_output));
  return status.ok() ? 0 : Fail(1, Message(status));
}

}  // namespace
}  // namespace halftone

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "halftone_opt FILE --passes=a,b | --pipeline [--target T] [--output FILE] [--stats]: "
      "runs passes on a graph file and prints the result");
  return halftone::cli::WithinMemory("halftone_opt", [argc, argv] {
    return halftone::cli::FinishOutput("halftone_opt",
                                       halftone::Main(halftone::cli::ParseCommandLine(argc, argv)));
  });
}
