// The remarks that Graph::notes returns: what works and yet is hardly meant, each once.
#include <algorithm>
#include <iomanip>

#include "halftone/graph/nn/graph_impl.h"
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

void Graph::Impl::AddNote(NoteKind kind, std::string text) {
  notes.Add(kind, std::move(text), name, debug >= 1);
}

void Graph::Impl::NoteUnreadBackward(const ir::Graph& traced) {
  std::string where;
  for (const std::unique_ptr<ir::Node>& node : traced.nodes()) {
    if (node->op().name == "gradient") return;
    if (where.empty() && node->op().name == "backward") where = node->location.ToString();
  }
  if (!where.empty()) where += ": ";
  AddNote(NoteKind::kUnreadBackward,
          Concat(where, "backward() has no effect: the graph has no optimizer and reads no ",
                 "gradient; add_optimizer trains it, and nn::gradients(loss, {w}) gives ",
                 "gradients as values"));
}

void Graph::Impl::NoteSurprises(const CompiledStep& step) {
  const std::vector<std::unique_ptr<ir::Node>>& nodes = step.traced->nodes();
  const auto amp = std::find_if(nodes.begin(), nodes.end(),
                                [](const auto& node) { return node->op().name == "amp"; });
  if (NoteFloat64(step) || amp == nodes.end()) return;
  NoteNothingLow(step, *amp::Policy::FromMarker(**amp).dtype);
  NoteMemory(step);
}

bool Graph::Impl::NoteFloat64(const CompiledStep& step) {
  const auto input =
      std::find_if(step.inputs.begin(), step.inputs.end(),
                   [](const ir::ValueType& type) { return type.dtype == DType::kF64; });
  if (input == step.inputs.end() || device.kind == Device::Kind::kReference) return false;
  const std::vector<runtime::Executable::Step> kernels = step.executable->steps();
  const auto slow = std::count_if(kernels.begin(), kernels.end(), [](const auto& kernel) {
    return GivesF64(*kernel.node) && Begins(kernel.kernel->name(), "reference:");
  });
  if (slow == 0) return false;
  AddNote(NoteKind::kFloat64,
          Concat("input ", input - step.inputs.begin(), " is ", input->ToString(), ": ", slow,
                 " of ", kernels.size(), " kernels compute in f64, on reference kernels, which ",
                 "are slow, and mixed precision leaves them alone; convert it to f32 (in Python ",
                 "x.astype(numpy.float32)) unless f64 is meant"));
  return true;
}

void Graph::Impl::NoteNothingLow(const CompiledStep& step, DType low) {
  const passes::AmpReport report = passes::MakeAmpReport(step.executable->graph());
  if (report.low_nodes > 0) return;
  std::string first;
  for (const passes::AmpReportRow& row : report.rows) {
    // What mixed precision is for, if there is any; else what comes first.
    if (first.empty() || row.op == "linear" || row.op == "matmul" || row.op == "conv2d") {
      first = Concat("; ", row.node, ": ", row.why);
    }
  }
  AddNote(NoteKind::kNothingLow,
          Concat("amp: no node runs in ", Name(low), ", of ", report.rows.size(),
                 " that compute with floats", first, "; amp_table() has the reason of each"));
}

// Whether f32 takes less is known only from a plan in f32, for which the pipeline runs once more.
void Graph::Impl::NoteMemory(const CompiledStep& step) {
  const std::vector<runtime::Executable::Step> kernels = step.executable->steps();
  const auto widened = std::count_if(kernels.begin(), kernels.end(), [](const auto& kernel) {
    return Begins(kernel.kernel->name(), "cpu:widened:");
  });
  const int64_t bytes = step.executable->plan().memory.arena_bytes;
  if (widened == 0 || bytes < kSmallArena || notes.Has(NoteKind::kMoreMemory)) return;
  const absl::StatusOr<int64_t> in_f32 =
      runtime::ArenaBytesInF32(*step.traced, device, step.config.own_passes());
  if (!in_f32.ok() || bytes <= *in_f32) return;
  AddNote(NoteKind::kMoreMemory,
          Concat("amp: the step takes ", MiB(bytes), " of working memory, in f32 about ",
                 MiB(*in_f32), ": ", widened, " kernels compute in f32 here and hold f32 copies ",
                 "of their 16-bit operands; f32 is the better choice on this device"));
}

void Graph::Impl::NoteCompilesAnew(CompiledStep& step, const GraphConfig& config) {
  if (!std::exchange(step.dropped_another, false)) {
    if (compiled_anew > 0) --compiled_anew;
    return;
  }
  if (++compiled_anew != kManyCompilations) return;
  std::string types;
  for (const ir::ValueType& type : step.inputs) {
    types += (types.empty() ? "" : ", ") + type.ToString();
  }
  AddNote(NoteKind::kCompilesAnew,
          Concat(kManyCompilations, " calls compiled anew, each dropping one of the ",
                 std::max(config.cache_size, 1), " compiled steps that are kept, now for (", types,
                 "); compiling costs as much as many steps: pad inputs to a few shapes, or raise ",
                 "config.cache_size"));
}

}  // namespace halftone::nn
