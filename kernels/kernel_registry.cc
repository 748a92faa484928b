#include <algorithm>
#include <mutex>

#include "halftone/kernels/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

// The dtype a candidate's set speaks about: that of the first float input, else of the first input,
// else of the first output.
DType MainDType(const ir::Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (IsFloat(node.input_type(i).dtype)) return node.input_type(i).dtype;
  }
  return node.num_inputs() > 0 ? node.input_type(0).dtype : node.output_type(0).dtype;
}

// "add(f32[2], f32[2])"
std::string Describe(const ir::Node& node) {
  std::string text = node.Label() + " of (";
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (i > 0) text += ", ";
    text += node.input_type(i).ToString();
  }
  return text + ")";
}

}  // namespace

absl::Status KernelCandidate::Accepts(const ir::Node& node) const {
  const DType dtype = MainDType(node);
  if (!dtypes.Contains(dtype)) {
    return Unimplemented("no ", Name(dtype), "; has ", dtypes.ToString());
  }
  if (device == Device::Kind::kCuda) HT_RETURN_IF_ERROR(NoChannelBlocks(node));
  return supports ? supports(node) : absl::OkStatus();
}

void KernelRegistry::Add(KernelCandidate candidate) {
  HT_CHECK(candidate.create != nullptr, "a kernel candidate needs create");
  const std::unique_lock lock(mutex_);
  candidates_.push_back(std::make_unique<KernelCandidate>(std::move(candidate)));
}

std::vector<const KernelCandidate*> KernelRegistry::Candidates(const std::string& op,
                                                               Device::Kind device) const {
  std::vector<const KernelCandidate*> found;
  const std::shared_lock lock(mutex_);
  for (const auto& candidate : candidates_) {
    const bool serves =
        candidate->device == device ||
        (device == Device::Kind::kCpu && candidate->device == Device::Kind::kReference);
    if (serves && candidate->op == op) found.push_back(candidate.get());
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto* a, const auto* b) { return a->tier < b->tier; });
  return found;
}

absl::StatusOr<std::unique_ptr<Kernel>> KernelRegistry::Select(const ir::Node& node,
                                                               Device::Kind device,
                                                               std::string* log) const {
  std::string refusals;
  for (const KernelCandidate* candidate : Candidates(node.op().name, device)) {
    absl::Status refusal = candidate->Accepts(node);
    if (refusal.ok()) {
      absl::StatusOr<std::unique_ptr<Kernel>> kernel = candidate->create(node);
      if (kernel.ok()) {
        (*kernel)->name_ = candidate->name;
        if (log != nullptr) *log += refusals;
        return kernel;
      }
      refusal = kernel.status();
      // Says nothing about the kernel: the next one would be a slow choice for good.
      if (absl::IsResourceExhausted(refusal)) {
        return ResourceExhausted(candidate->name, ": ", Message(refusal));
      }
    }
    refusals += "  " + candidate->name + ": " + Message(refusal) + "\n";
  }
  if (refusals.empty()) return Unimplemented(Describe(node), ": no kernel is registered");
  refusals.pop_back();
  return Unimplemented(Describe(node), ": every kernel refuses:\n", refusals);
}

absl::StatusOr<std::unique_ptr<Kernel>> KernelRegistry::SelectGroup(
    const std::vector<const ir::Node*>& nodes, Device::Kind device) const {
  for (const KernelCandidate* candidate : Candidates(nodes[0]->op().name, device)) {
    if (candidate->create_group == nullptr ||
        !std::all_of(nodes.begin(), nodes.end(),
                     [&](const auto* node) { return candidate->Accepts(*node).ok(); })) {
      continue;
    }
    HT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, candidate->create_group(nodes));
    kernel->name_ = candidate->name;
    return kernel;
  }
  return Unimplemented(Describe(*nodes[0]), ": no kernel does it together with ", nodes.size() - 1,
                       " more");
}

absl::StatusOr<std::unique_ptr<Kernel>> KernelRegistry::CreateNamed(const ir::Node& node,
                                                                    const std::string& name) const {
  for (const KernelCandidate* candidate : All()) {
    if (candidate->op != node.op().name || candidate->name != name) continue;
    HT_RETURN_IF_ERROR(candidate->Accepts(node));
    HT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, candidate->create(node));
    kernel->name_ = candidate->name;
    return kernel;
  }
  return NotFound("no kernel \"", name, "\" for op ", node.op().name);
}

std::vector<const KernelCandidate*> KernelRegistry::All() const {
  std::vector<const KernelCandidate*> all;
  const std::shared_lock lock(mutex_);
  for (const auto& candidate : candidates_) all.push_back(candidate.get());
  return all;
}

}  // namespace halftone::kernels
