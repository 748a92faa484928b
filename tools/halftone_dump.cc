// Shows a graph file (text or protobuf form): the graph itself, a drawing, JSON, or the
// mixed-precision decisions. Exit status: 0, 1 the file cannot be read or lowered, 2 wrong options.
#include <cstdio>
#include <memory>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "halftone/graph/ir/proto.h"
#include "halftone/graph/ir/text.h"
#include "halftone/passes/amp/report.h"
#include "halftone/passes/fixed_targets.h"
#include "halftone/passes/insert_amp_casts.h"
#include "halftone/passes/pass_manager.h"
#include "halftone/passes/trim_amp_islands.h"
#include "halftone/tools/support/graph_dot.h"
#include "halftone/tools/support/graph_json.h"

ABSL_FLAG(std::string, format, "text", "text, dot or json");
ABSL_FLAG(bool, amp, false,
          "the decision table of mixed precision (text or json). A graph with an `amp` marker that "
          "no pass has read "
          "yet is decided first, for --target");
ABSL_FLAG(std::string, target, "cpu-avx512bf16", "device that --amp decides for");

namespace halftone {
namespace {

int Fail(int code, const std::string& message) {
  std::fprintf(stderr, "halftone_dump: %s\n", message.c_str());
  return code;
}

bool HasAmpMarker(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op().name == "amp") return true;
  }
  return false;
}

absl::Status Decide(ir::Graph& graph, const ir::Target& target) {
  passes::PassManager manager;
  manager.Add(passes::MakeInsertAmpCasts());
  manager.Add(passes::MakeTrimAmpIslands());
  passes::PassContext context;
  context.target = &target;
  return manager.Run(graph, context);
}

int Main(const std::vector<char*>& arguments) {
  const std::string format = absl::GetFlag(FLAGS_format);
  const bool amp = absl::GetFlag(FLAGS_amp);
  if (arguments.size() != 2)
    return Fail(2, "expected one FILE; halftone_dump FILE [--format text|dot|json] [--amp]");
  if (format != "text" && format != "dot" && format != "json") {
    return Fail(2, "--format=" + format + ": expected text, dot or json");
  }
  if (amp && format == "dot")
    return Fail(2, "--amp: a table has no drawing; expected --format text or json");
  const auto target = passes::FindFixedTarget(absl::GetFlag(FLAGS_target));
  if (!target.ok()) return Fail(2, "--target: " + Message(target.status()));

  auto read = ir::ReadGraphFile(arguments[1]);
  if (!read.ok()) return Fail(1, Message(read.status()));
  ir::Graph& graph = **read;
  if (amp) {
    if (HasAmpMarker(graph)) {
      const absl::Status status = Decide(graph, **target);
      if (!status.ok()) return Fail(1, Message(status));
    }
    const passes::AmpReport report = passes::MakeAmpReport(graph);
    if (report.rows.empty()) {
      return Fail(1, std::string(arguments[1]) +
                         ": no mixed-precision decisions: the graph has neither an `amp` marker "
                         "nor been through insert-amp-casts");
    }
    std::fputs((format == "json" ? passes::ToJson(report) : passes::ToText(report)).c_str(),
               stdout);
    return 0;
  }
  const std::string shown = format == "dot"    ? tools::ToDot(graph)
                            : format == "json" ? tools::ToJson(graph)
                                               : ir::Print(graph, ir::TextOptions::Lossless());
  std::fputs(shown.c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace halftone

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "halftone_dump FILE [--format text|dot|json] [--amp]: shows a graph file");
  return halftone::Main(absl::ParseCommandLine(argc, argv));
}
