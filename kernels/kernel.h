// Kernel: one node made executable. KernelCandidate: a way to make one. KernelRegistry: the ordered
// candidates of every op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "halftone/core/device.h"
#include "halftone/core/status.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/kernels/device_run_state.h"

namespace halftone::kernels {

// A run-time index out of range (label, token id). The first one of a run is kept; the run ends at
// that node with OutOfRange and no variable changes.
struct Fault {
  bool raised = false;
  int64_t value = 0;
  int64_t bound = 0;     // valid: [0, bound)
  int64_t position = 0;  // among the indices, which are input 1, in row-major order
};

// What every kernel of one run shares.
struct RunState {
  uint64_t run_count = 0;  // counter of random ops; always advances
  Fault fault;
  // Of a step that several processes make together: this one's part of it has failed, and kernels that
  // exchange data tell the others; or one of the others has, as such a kernel has heard.
  bool failed_here = false;
  bool failed_elsewhere = false;
  // Accelerators only. Kernels put their work on `stream` (a cudaStream_t) and do not wait for it;
  // the first that cannot says why in `error`.
  void* stream = nullptr;
  DeviceRunState* device = nullptr;
  absl::Status error = absl::OkStatus();
};

// Inputs and outputs of whole tensors are 64-byte aligned; a kernel that can be called with a part
// of one looks at the pointer before it moves several elements at once.
struct KernelArgs {
  const void* const* inputs;  // one per node input, in the layout its type says
  void* const* outputs;       // one per node output; may equal an input of an in-place pair, else
                              // nothing overlaps
  void* workspace;            // workspace_bytes(), 64-byte aligned, contents undefined; null if 0
  RunState* state;
  int64_t fault_id = 0;  // what a kernel on an accelerator names itself in DeviceRunState; from 1
  // Of updates: the 16-bit copy of each one's new parameter (attribute `low`); null where it has
  // none.
  void* const* copies = nullptr;
  // What Pack has made of input 1, by a kernel that has a packing; else null.
  const void* packed = nullptr;
};

// How a kernel holds an operand that stays the same from step to step: in an order of its own, made
// once for every value. Kernels whose formats are equal read what any of them has packed.
struct Packing {
  size_t bytes = 0;    // 0: the kernel reads the operand as it lies
  std::string format;  // the same only for the same order, made of the same order and dtype
};

// Built for exact shapes, dtypes and layouts. Run looks nothing up and takes no lock; outside
// library calls (bracketed by AllocationPause) it allocates nothing.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void Run(const KernelArgs& args) = 0;
  size_t workspace_bytes() const { return workspace_bytes_; }
  // "cpu:onednn:matmul"; with the library's implementation where it has one: "brgemm:avx512_core".
  const std::string& name() const { return name_; }
  const std::string& implementation() const { return implementation_; }
  // On an accelerator the kernels behind a faulting one run on. Those for which this is true leave
  // an output that lies over its input untouched once the step has a fault, so only they may write
  // variables in place.
  bool keeps_state_on_fault() const { return keeps_state_on_fault_; }
  // Of input 1, of a node with the attribute `packed` (pack-weights). Not empty: Run takes
  // KernelArgs::packed and does not read the input.
  const Packing& packing() const { return packing_; }
  // Writes input 1 to `packed`, in the kernel's order. Of the arguments it takes that input and the
  // workspace.
  virtual void Pack(const KernelArgs& /*args*/, void* /*packed*/) {}
  // Whether it writes KernelArgs::copies. Copies that an update leaves are cast before the next step.
  bool writes_copies() const { return writes_copies_; }

 protected:
  size_t workspace_bytes_ = 0;
  std::string implementation_;
  bool keeps_state_on_fault_ = false;
  bool writes_copies_ = false;
  Packing packing_;

 private:
  friend class KernelRegistry;
  std::string name_;
};

// Candidates are tried in this order. kFallback: ours too, for what the others leave, an element at
// a time or in f32 around another candidate.
enum class KernelTier : uint8_t { kLibrary, kNative, kFallback, kReference };

struct KernelCandidate {
  std::string name;  // stable: "cpu:onednn:matmul", "cpu:simd:add", "reference:add"
  std::string op;
  Device::Kind device = Device::Kind::kCpu;  // kReference candidates also serve the CPU, last
  KernelTier tier = KernelTier::kNative;
  // Main dtypes it serves; the cheap part of Supports, and what Target::HasKernel asks.
  ir::DTypeSet dtypes;
  // It runs an f32 kernel on copies of 16-bit operands, see ir::Target::WhyWidened.
  bool widens = false;
  // OK, or Unimplemented with the reason: "needs channels-last", "library gives only ref:any".
  std::function<absl::Status(const ir::Node&)> supports;
  std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const ir::Node&)> create;
  // Of `fused`: whether bodies may have the op. Empty: any that has a kernel.
  std::function<bool(const std::string& op)> takes_op;
  // Updates, accelerators only: one kernel for several nodes that this candidate supports, as
  // group-updates has found them. Its arguments are the inputs of all nodes one after the other,
  // their outputs likewise, and the copies. Empty: one kernel a node.
  std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const std::vector<const ir::Node*>&)>
      create_group;

  // What `supports` says, after `dtypes` was asked.
  absl::Status Accepts(const ir::Node& node) const;
};

// Thread-safe; candidates stay where they are.
class KernelRegistry {
 public:
  // With the kernels of the CPU, and those of CUDA once a CUDA device was opened.
  static KernelRegistry& Global();
  void Add(KernelCandidate candidate);
  // Candidates of an op for a device, in order: tier, then registration order. CPU includes
  // reference ones, last.
  std::vector<const KernelCandidate*> Candidates(const std::string& op, Device::Kind device) const;
  // The first candidate that supports and creates. Errors: Unimplemented listing each candidate
  // with its refusal; ResourceExhausted if the memory to create one is lacking. `log`, if given,
  // gets the refusals before the chosen one.
  absl::StatusOr<std::unique_ptr<Kernel>> Select(const ir::Node& node, Device::Kind device,
                                                 std::string* log = nullptr) const;
  // The same for several nodes of one op that one kernel is to do.
  absl::StatusOr<std::unique_ptr<Kernel>> SelectGroup(const std::vector<const ir::Node*>& nodes,
                                                      Device::Kind device) const;
  // By exact name, for tests and benchmarks.
  absl::StatusOr<std::unique_ptr<Kernel>> CreateNamed(const ir::Node& node,
                                                      const std::string& name) const;
  std::vector<const KernelCandidate*> All() const;

 private:
  mutable std::shared_mutex mutex_;
  std::vector<std::unique_ptr<KernelCandidate>> candidates_;
};

// Defined in the generated list.
void RegisterBuiltinKernels(KernelRegistry& registry);

}  // namespace halftone::kernels
