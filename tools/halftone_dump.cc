// Shows a graph file (text or protobuf form), or a folder of graphs that a program dumped: the
// graph itself, a drawing, a page, JSON; its mixed-precision decisions, memory or cost; or what
// differs between two. With --run, the page of a training run.
//
// Exit status: 0, 1 the file cannot be read or lowered, 2 wrong options. With --diff as diff has
// it: 0 no differences, 1 differences, 2 anything that went wrong.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/core/io/file.h"
#include "halftone/core/printable.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/onnx/onnx.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tools/support/amp_explain.h"
#include "halftone/tools/support/amp_table.h"
#include "halftone/tools/support/cast_report.h"
#include "halftone/tools/support/cost_report.h"
#include "halftone/tools/support/fusion_report.h"
#include "halftone/tools/support/graph_diff.h"
#include "halftone/tools/support/graph_dot.h"
#include "halftone/tools/support/graph_json.h"
#include "halftone/tools/support/graph_source.h"
#include "halftone/tools/support/html_page.h"
#include "halftone/tools/support/memory_report.h"
#include "halftone/tools/support/run_history.h"
#include "halftone/tools/support/run_page.h"

ABSL_FLAG(std::string, format, "text", "text, dot, json, html or onnx; tables: text or json");
ABSL_FLAG(
    std::string, variables, "",
    "of --format=onnx: file of state (checkpoint, .npz, .safetensors) with the values of variables; empty: those of the folder or "
    "of the model");
ABSL_FLAG(
    std::string, after, "",
    "show the graph after this pass: the pipeline runs up to there, for --target; of a folder, "
    "the file of that pass is taken");
ABSL_FLAG(bool, amp, false,
          "the decision table of mixed precision. "
          "A graph with an `amp` marker that no pass has read yet is decided first, for --target");
ABSL_FLAG(std::string, why, "", "of --amp: the chain of decisions that ends at this node");
ABSL_FLAG(std::string, what_if, "",
          "of --amp: what changes in the policy would change, such as deny:softmax,allow:head/*");
ABSL_FLAG(std::string, policy, "", "of --amp: decide by this policy file, not by the graph's own");
ABSL_FLAG(std::string, write_policy, "",
          "of --amp: write the policy in force to this file, to be edited and read again");
ABSL_FLAG(bool, memory, false, "bytes held at each node, the peak, and who holds it");
ABSL_FLAG(bool, cost, false, "flops and bytes of each node, and their shares");
ABSL_FLAG(bool, fusion, false,
          "which elementwise nodes become one for --target, and why others stay apart");
ABSL_FLAG(bool, diff, false,
          "what differs between two files; with --after, after that pass. With --amp, GRAPH A B: "
          "between what two policy files decide");
ABSL_FLAG(std::string, run, "",
          "a page of the training run whose event files are in this folder: of nn::RunLog, or of "
          "others for TensorBoard");
ABSL_FLAG(std::string, target, "cpu-avx512bf16",
          "device for --after, --amp, --fusion and the page: cpu-scalar, cpu-avx2, cpu-avx512, "
          "cpu-avx512bf16 (both also with -nhwc), reference or cuda-sm90");

namespace halftone {
namespace {

constexpr char kUsage[] =
    "halftone_dump FILE [--format text|dot|json|html|onnx] [--after PASS] [--amp | --memory | --cost | "
    "--fusion] "
    "or halftone_dump --diff A B, or halftone_dump GRAPH --amp --diff POLICY_A POLICY_B, or "
    "halftone_dump --run DIR";

int Fail(int code, const std::string& message) {
  cli::PrintMessage("halftone_dump", message);
  return code;
}

int Show(const std::string& text, int code = 0) {
  // Names from files are in it.
  std::fputs(Printable(text, true).c_str(), stdout);
  return code;
}

// Of the options that only --amp has.
std::string CheckAmpOptions(const std::string& format) {
  std::vector<std::string> asked;
  if (!absl::GetFlag(FLAGS_why).empty()) asked.emplace_back("--why");
  if (!absl::GetFlag(FLAGS_what_if).empty()) asked.emplace_back("--what-if");
  if (!absl::GetFlag(FLAGS_write_policy).empty()) asked.emplace_back("--write-policy");
  if (absl::GetFlag(FLAGS_diff) && absl::GetFlag(FLAGS_amp)) asked.emplace_back("--diff");
  if (asked.size() > 1) {
    return asked[0] + " and " + asked[1] +
           ": expected one of --why, --what-if, --diff, --write-policy";
  }
  if (!asked.empty() && format != "text") {
    return asked[0] + ": has no --format=" + format + "; expected text";
  }
  if (!absl::GetFlag(FLAGS_policy).empty()) asked.emplace_back("--policy");
  if (!asked.empty() && !absl::GetFlag(FLAGS_amp)) return asked[0] + ": expected --amp beside it";
  return "";
}

// What is wrong with the options; "" if nothing is.
std::string CheckOptions(const std::vector<char*>& arguments) {
  const std::string format = absl::GetFlag(FLAGS_format);
  if (!std::set<std::string>{"text", "dot", "json", "html", "onnx"}.contains(format)) {
    return "--format=" + format + ": expected text, dot, json, html or onnx";
  }
  std::vector<std::string> tables;
  if (absl::GetFlag(FLAGS_amp)) tables.emplace_back("--amp");
  if (absl::GetFlag(FLAGS_memory)) tables.emplace_back("--memory");
  if (absl::GetFlag(FLAGS_cost)) tables.emplace_back("--cost");
  if (absl::GetFlag(FLAGS_fusion)) tables.emplace_back("--fusion");
  if (absl::GetFlag(FLAGS_diff) && !absl::GetFlag(FLAGS_amp)) tables.emplace_back("--diff");
  if (tables.size() > 1) {
    return tables[0] + " and " + tables[1] +
           ": expected one of --amp, --memory, --cost, --fusion, "
           "--diff";
  }
  if (!tables.empty() && format != "text" && format != "json") {
    return tables[0] + ": a table has no --format=" + format + "; expected text or json";
  }
  if (!absl::GetFlag(FLAGS_run).empty()) {
    if (arguments.size() != 1 || !tables.empty() || !absl::GetFlag(FLAGS_after).empty() ||
        (format != "text" && format != "html")) {
      return "--run: expected nothing beside it: it always gives a page";
    }
  } else if (absl::GetFlag(FLAGS_diff) && absl::GetFlag(FLAGS_amp)) {
    if (arguments.size() != 4) return "--amp --diff: expected a graph and two policies, GRAPH A B";
  } else if (absl::GetFlag(FLAGS_diff)) {
    if (arguments.size() != 3) return "--diff: expected two files, A B";
  } else if (arguments.size() != 2) {
    return std::string("expected one FILE; ") + kUsage;
  }
  if (std::string wrong = CheckAmpOptions(format); !wrong.empty()) return wrong;
  const size_t graphs = absl::GetFlag(FLAGS_amp) ? 2 : arguments.size();
  for (size_t i = 1; i < graphs && i < arguments.size(); ++i) {
    const absl::Status known = tools::CheckAfter(arguments[i], absl::GetFlag(FLAGS_after));
    if (!known.ok()) return "--after: " + Message(known);
  }
  if (format == "onnx" && isatty(STDOUT_FILENO) != 0) {
    return "--format=onnx: a model is no text; expected standard output in a file, > model.onnx";
  }
  const auto target = kernels::FindFixedTarget(absl::GetFlag(FLAGS_target));
  return target.ok() ? "" : "--target: " + Message(target.status());
}

// What decides anew wants the graph as traced: of a folder that one, unless another is asked for.
bool DecidesAnew() {
  if (absl::GetFlag(FLAGS_fusion)) return true;
  return absl::GetFlag(FLAGS_amp) &&
         (absl::GetFlag(FLAGS_diff) || !absl::GetFlag(FLAGS_what_if).empty() ||
          !absl::GetFlag(FLAGS_policy).empty() || !absl::GetFlag(FLAGS_write_policy).empty());
}

absl::StatusOr<onnx::ImportedModel> Load(const std::string& path, const ir::Target& target) {
  std::string after = absl::GetFlag(FLAGS_after);
  std::error_code ignored;
  if (after.empty() && DecidesAnew() && std::filesystem::is_directory(path, ignored)) {
    after = "input";
  }
  return tools::LoadGraph(path, after, target);
}

int ShowDiff(const std::vector<char*>& arguments, const ir::Target& target, bool json) {
  const auto a = Load(arguments[1], target);
  if (!a.ok()) return Fail(2, Message(a.status()));
  const auto b = Load(arguments[2], target);
  if (!b.ok()) return Fail(2, Message(b.status()));
  const std::vector<tools::Difference> differences = tools::DiffGraphs(*a->graph, *b->graph);
  return Show(json ? tools::ToJson(differences) : tools::ToText(differences),
              differences.empty() ? 0 : 1);
}

// The graph's own policy, or that of --policy.
absl::StatusOr<amp::Policy> ChosenPolicy(const ir::Graph& graph) {
  const std::string path = absl::GetFlag(FLAGS_policy);
  return path.empty() ? tools::PolicyOf(graph) : amp::Policy::ReadFile(path);
}

absl::StatusOr<passes::AmpReport> ReportUnder(const ir::Graph& graph, const amp::Policy& policy,
                                              const ir::Target& target) {
  HT_ASSIGN_OR_RETURN(const auto decided, tools::DecideUnder(graph, policy, target));
  return passes::MakeAmpReport(*decided);
}

// --why: of a graph that carries its decisions already, those.
absl::StatusOr<std::string> Why(const ir::Graph& graph, const ir::Target& target) {
  const std::string node = absl::GetFlag(FLAGS_why);
  const absl::StatusOr<amp::Policy> policy = ChosenPolicy(graph);
  if (!policy.ok() && absl::GetFlag(FLAGS_policy).empty()) return tools::WhyDecided(graph, node);
  HT_RETURN_IF_ERROR(policy.status());
  HT_ASSIGN_OR_RETURN(const auto decided, tools::DecideUnder(graph, *policy, target));
  return tools::WhyDecided(*decided, node);
}

absl::StatusOr<std::string> WhatIf(const ir::Graph& graph, const ir::Target& target) {
  HT_ASSIGN_OR_RETURN(const amp::Policy policy, ChosenPolicy(graph));
  absl::StatusOr<amp::Policy> changed = tools::WithChanges(policy, absl::GetFlag(FLAGS_what_if));
  if (!changed.ok()) return Annotate(changed.status(), "--what-if: ");
  HT_ASSIGN_OR_RETURN(const auto before, ReportUnder(graph, policy, target));
  HT_ASSIGN_OR_RETURN(const auto after, ReportUnder(graph, *changed, target));
  return tools::DiffAmp(before, after);
}

absl::StatusOr<std::string> WritePolicy(const ir::Graph& graph, const ir::Target& target) {
  HT_ASSIGN_OR_RETURN(const amp::Policy policy, ChosenPolicy(graph));
  HT_ASSIGN_OR_RETURN(const auto report, ReportUnder(graph, policy, target));
  const std::string path = absl::GetFlag(FLAGS_write_policy);
  HT_RETURN_IF_ERROR(io::WriteFileAtomically(path, tools::EffectivePolicy(policy, report)));
  return Concat(path, ": ", passes::Summary(report), "\n");
}

int ShowPolicyDiff(const ir::Graph& graph, const char* a, const char* b, const ir::Target& target) {
  std::vector<passes::AmpReport> reports;
  for (const char* path : {a, b}) {
    const auto policy = amp::Policy::ReadFile(path);
    if (!policy.ok()) return Fail(2, Message(policy.status()));
    auto report = ReportUnder(graph, *policy, target);
    if (!report.ok()) return Fail(2, path + (": " + Message(report.status())));
    reports.push_back(*std::move(report));
  }
  return Show(tools::DiffAmp(reports[0], reports[1], {a, b}),
              tools::CountChanged(reports[0], reports[1]) == 0 ? 0 : 1);
}

int ShowOrFail(const absl::StatusOr<std::string>& text) {
  return text.ok() ? Show(*text) : Fail(1, Message(text.status()));
}

// The casts of the step, where the graph as traced is there. Of a folder `graph` is another one.
absl::StatusOr<std::optional<tools::CastReport>> CastsOf(const std::string& path,
                                                         const ir::Graph& graph,
                                                         const ir::Target& target) {
  std::error_code ignored;
  if (!absl::GetFlag(FLAGS_policy).empty()) {
    HT_ASSIGN_OR_RETURN(const amp::Policy policy, ChosenPolicy(graph));
    HT_ASSIGN_OR_RETURN(const auto traced, tools::WithPolicy(graph, policy, target));
    return tools::MakeCastReport(*traced, target);
  }
  if (passes::FindMarker(graph, "amp") != nullptr) return tools::MakeCastReport(graph, target);
  if (!std::filesystem::is_directory(path, ignored)) return std::nullopt;
  HT_ASSIGN_OR_RETURN(const ir::Model traced, tools::LoadGraph(path, "input", target));
  if (passes::FindMarker(*traced.graph, "amp") == nullptr) return std::nullopt;
  return tools::MakeCastReport(*traced.graph, target);
}

int ShowAmp(const std::string& path, const ir::Graph& graph, const ir::Target& target, bool json) {
  absl::StatusOr<passes::AmpReport> report = tools::DecideAmp(graph, target);
  if (const std::string file = absl::GetFlag(FLAGS_policy); !file.empty()) {
    const auto policy = amp::Policy::ReadFile(file);
    if (!policy.ok()) return Fail(1, Message(policy.status()));
    report = ReportUnder(graph, *policy, target);
  }
  if (!report.ok()) return Fail(1, Message(report.status()));
  if (report->rows.empty()) {
    return Fail(1, path +
                       ": no mixed-precision decisions: the graph "
                       "has neither an `amp` marker nor been through insert-amp-casts");
  }
  const auto casts = CastsOf(path, graph, target);
  if (!casts.ok()) return Fail(1, Message(casts.status()));
  if (json) return Show(tools::ToJson(*report, *casts));
  return Show(passes::ToText(*report) + (casts->has_value() ? "\n" + tools::ToText(**casts) : ""));
}

int ShowFusion(const ir::Graph& graph, const ir::Target& target, bool json) {
  const auto report = tools::MakeFusionReport(graph, target);
  if (!report.ok()) return Fail(1, "--fusion: " + Message(report.status()));
  return Show(json ? tools::ToJson(*report) : tools::ToText(*report));
}

int ShowPage(const ir::Graph& graph, const ir::Target& target) {
  const auto amp = tools::DecideAmp(graph, target);
  if (!amp.ok()) return Fail(1, Message(amp.status()));
  return Show(tools::ToHtml(graph, *amp));
}

int ShowRun(const std::string& folder) {
  const auto run = tools::ReadRun(folder);
  if (!run.ok()) return Fail(1, Message(run.status()));
  return Show(tools::ToHtml(*run, folder));
}

// The forward graph with its values: of a folder the graph as traced, before passes took it apart.
absl::StatusOr<std::string> ToModel(const std::string& path, const ir::Target& target) {
  HT_ASSIGN_OR_RETURN(
      const ir::Model model,
      tools::LoadModel(path, absl::GetFlag(FLAGS_after), absl::GetFlag(FLAGS_variables), target));
  return onnx::ToOnnxBytes(*model.graph, model.variables);
}

int WriteModel(const std::string& path, const ir::Target& target) {
  const auto bytes = ToModel(path, target);
  if (!bytes.ok()) return Fail(1, Message(bytes.status()));
  std::fwrite(bytes->data(), 1, bytes->size(), stdout);
  return 0;
}

int Main(const std::vector<char*>& arguments) {
  const std::string wrong = CheckOptions(arguments);
  if (!wrong.empty()) return Fail(2, wrong);
  if (const std::string run = absl::GetFlag(FLAGS_run); !run.empty()) return ShowRun(run);
  const std::string format = absl::GetFlag(FLAGS_format);
  const bool json = format == "json";
  const ir::Target& target = **kernels::FindFixedTarget(absl::GetFlag(FLAGS_target));
  if (absl::GetFlag(FLAGS_diff) && !absl::GetFlag(FLAGS_amp)) {
    return ShowDiff(arguments, target, json);
  }

  if (format == "onnx") return WriteModel(arguments[1], target);
  const auto loaded = Load(arguments[1], target);
  if (!loaded.ok()) return Fail(1, Message(loaded.status()));
  const ir::Graph& graph = *loaded->graph;
  if (absl::GetFlag(FLAGS_amp) && absl::GetFlag(FLAGS_diff)) {
    return ShowPolicyDiff(graph, arguments[2], arguments[3], target);
  }
  if (!absl::GetFlag(FLAGS_why).empty()) return ShowOrFail(Why(graph, target));
  if (!absl::GetFlag(FLAGS_what_if).empty()) return ShowOrFail(WhatIf(graph, target));
  if (!absl::GetFlag(FLAGS_write_policy).empty()) return ShowOrFail(WritePolicy(graph, target));
  if (absl::GetFlag(FLAGS_amp)) return ShowAmp(arguments[1], graph, target, json);
  if (absl::GetFlag(FLAGS_memory)) {
    const tools::MemoryReport report = tools::MakeMemoryReport(graph);
    return Show(json ? tools::ToJson(report) : tools::ToText(report));
  }
  if (absl::GetFlag(FLAGS_cost)) {
    const tools::CostReport report = tools::MakeCostReport(graph);
    return Show(json ? tools::ToJson(report) : tools::ToText(report));
  }
  if (absl::GetFlag(FLAGS_fusion)) return ShowFusion(graph, target, json);
  if (format == "dot") return Show(tools::ToDot(graph));
  if (format == "html") return ShowPage(graph, target);
  if (json) return Show(tools::ToJson(graph));
  return Show(ir::Print(graph, ir::TextOptions::Lossless()));
}

}  // namespace
}  // namespace halftone

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(std::string(halftone::kUsage) + ": shows a graph file");
  return halftone::cli::WithinMemory("halftone_dump", [argc, argv] {
    return halftone::cli::FinishOutput("halftone_dump",
                                       halftone::Main(halftone::cli::ParseCommandLine(argc, argv)));
  });
}
