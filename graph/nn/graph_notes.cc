#include "halftone/graph/nn/graph_notes.h"

#include <algorithm>
#include <iomanip>
#include <memory>
#include <sstream>

#include "halftone/graph/ops/support/record.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/passes/amp/policy_match.h"
#include "halftone/passes/amp/report.h"

namespace halftone::nn {
namespace {

// Below it nobody minds.
constexpr int64_t kSmallArena = int64_t{1} << 20;
// Steps dropped before it is worth a note.
constexpr int kManyCompilations = 8;

bool Begins(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

std::string MiB(int64_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / (1 << 20) << " MiB";
  return out.str();
}

bool GivesF64(const ir::Node& node) {
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (node.output_type(i).dtype == DType::kF64) return true;
  }
  return false;
}

}  // namespace

void GraphNotes::AddEntries(const amp::Policy& policy,
                            const std::map<std::string, std::string>& unmatched, bool complete) {
  const std::pair<ir::AmpClass, const std::vector<std::string>*> lists[] = {
      {ir::AmpClass::kAllow, &policy.allow},
      {ir::AmpClass::kInfer, &policy.infer},
      {ir::AmpClass::kClear, &policy.clear},
      {ir::AmpClass::kDeny, &policy.deny}};
  for (const auto& [amp_class, list] : lists) {
    for (const std::string& pattern : *list) {
      const std::string entry = amp::EntryText(amp_class, pattern);
      const auto found = unmatched.find(entry);
      if (found == unmatched.end()) {
        matched_entries_.insert(entry);
        const auto noted = entry_notes_.find(entry);
        if (noted == entry_notes_.end()) continue;
        notes_.Remove(noted->second);
        entry_notes_.erase(noted);
      } else if (matched_entries_.count(entry) == 0 && complete) {
        if (entry_notes_.emplace(entry, found->second).second) {
          Add(NoteKind::kPass, found->second);
        }
      }
    }
  }
}

void GraphNotes::AddUnreadBackward(const ir::Graph& traced) {
  std::string where;
  for (const std::unique_ptr<ir::Node>& node : traced.nodes()) {
    if (node->op().name == "gradient") return;
    if (where.empty() && node->op().name == "backward") where = node->location.ToString();
  }
  if (!where.empty()) where += ": ";
  Add(NoteKind::kUnreadBackward,
      Concat(where, "backward() has no effect: the graph has no optimizer and reads no ",
             "gradient; add_optimizer trains it, and nn::gradients(loss, {w}) gives ",
             "gradients as values"));
}

void GraphNotes::AddSurprises(const CompiledStep& step, const Device& device) {
  const std::vector<std::unique_ptr<ir::Node>>& nodes = step.traced->nodes();
  const auto amp = std::find_if(nodes.begin(), nodes.end(),
                                [](const auto& node) { return node->op().name == "amp"; });
  if (AddFloat64(step, device) || amp == nodes.end()) return;
  AddNothingLow(step, device, *amp::Policy::FromMarker(**amp).dtype);
  AddMemory(step, device);
}

bool GraphNotes::AddFloat64(const CompiledStep& step, const Device& device) {
  const auto input =
      std::find_if(step.inputs.begin(), step.inputs.end(),
                   [](const ir::ValueType& type) { return type.dtype == DType::kF64; });
  if (input == step.inputs.end() || device.kind == Device::Kind::kReference) return false;
  const std::vector<runtime::Executable::Step> kernels = step.executable->steps();
  const auto slow = std::count_if(kernels.begin(), kernels.end(), [](const auto& kernel) {
    return GivesF64(*kernel.node) && Begins(kernel.kernel->name(), "reference:");
  });
  if (slow == 0) return false;
  Add(NoteKind::kFloat64,
      Concat("input ", input - step.inputs.begin(), " is ", input->ToString(), ": ", slow, " of ",
             kernels.size(), " kernels compute in f64, on reference kernels, which ",
             "are slow, and mixed precision leaves them alone; convert it to f32 (in Python ",
             "x.astype(numpy.float32)) unless f64 is meant"));
  return true;
}

void GraphNotes::AddNothingLow(const CompiledStep& step, const Device& device, DType low) {
  if (passes::MakeAmpReport(step.executable->graph()).low_nodes > 0) return;
  const passes::AmpReport report = ReportAmp(step, device);
  if (report.low_nodes > 0) return;
  std::string first;
  for (const passes::AmpReportRow& row : report.rows) {
    if (!row.is_decided && report.f32_nodes > 0) continue;
    // What mixed precision is for, if there is any; else what comes first.
    if (first.empty() || row.op == "linear" || row.op == "matmul" || row.op == "conv2d" ||
        row.op == "conv3d") {
      first = Concat("; ", row.node, ": ", row.why);
    }
  }
  Add(NoteKind::kNothingLow,
      Concat("amp: no node runs in ", Name(low), ", of ", report.f32_nodes,
             " that compute with floats", first, "; amp_table() has the reason of each"));
}

// Whether f32 takes less is known only from a plan in f32, for which the pipeline runs once more.
void GraphNotes::AddMemory(const CompiledStep& step, const Device& device) {
  const std::vector<runtime::Executable::Step> kernels = step.executable->steps();
  const auto widened = std::count_if(kernels.begin(), kernels.end(), [](const auto& kernel) {
    return ops::IsWidened(*kernel.node);
  });
  const runtime::StepPlan& plan = step.executable->plan();
  int64_t bytes = plan.memory.arena_bytes;
  for (const runtime::StepPlan::KeptCast& kept : plan.kept) {
    bytes += kept.call.nodes[0]->output_type().num_bytes();
  }
  if (widened == 0 || bytes < kSmallArena || notes_.Has(NoteKind::kMoreMemory)) return;
  const absl::StatusOr<int64_t> in_f32 =
      runtime::ArenaBytesInF32(*step.traced, device, step.config.own_passes());
  if (!in_f32.ok() || bytes <= *in_f32) return;
  Add(NoteKind::kMoreMemory,
      Concat("amp: the step takes ", MiB(bytes),
             " of working memory and 16-bit weights, in f32 about ", MiB(*in_f32), ": ", widened,
             " kernels compute in f32 here and hold f32 copies ",
             "of their 16-bit operands; f32 is the better choice on this device"));
}

void GraphNotes::AddCompilesAnew(CompiledStep& step, int cache_size) {
  if (!std::exchange(step.dropped_another, false)) {
    if (compiled_anew_ > 0) --compiled_anew_;
    return;
  }
  if (++compiled_anew_ != kManyCompilations) return;
  std::string types;
  for (const ir::ValueType& type : step.inputs) {
    types += (types.empty() ? "" : ", ") + type.ToString();
  }
  Add(NoteKind::kCompilesAnew,
      Concat(kManyCompilations, " calls compiled anew, each dropping one of the ",
             std::max(cache_size, 1), " compiled steps that are kept, now for (", types,
             "); compiling costs as much as many steps: pad inputs to a few shapes, or raise ",
             "config.cache_size"));
}

}  // namespace halftone::nn
